//! TLS to the server, as the url asks for it (`sslmode`, `sslrootcert`).
//!
//! `prefer` and `require` without a root certificate encrypt and check nobody's name: that is what they
//! mean to PostgreSQL's own programs too. With `sslrootcert`, and for `verify-ca` and `verify-full`, the
//! server's certificate and name are checked; this is stricter than PostgreSQL's `verify-ca`.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// The client's side of TLS. With a file of root certificates it checks the server.
///
/// # Errors
/// The file cannot be read, or has no certificate: in words.
pub(crate) fn client(roots: Option<&Path>) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let Some(path) = roots else {
        let verifier = Arc::new(Encrypts(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        return Ok(builder.with_no_client_auth());
    };
    let named = |e: String| format!("the root certificates {}: {e}", path.display());
    let mut store = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(path).map_err(|e| named(e.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|e| named(e.to_string()))?;
        store.add(certificate).map_err(|e| named(e.to_string()))?;
    }
    if store.is_empty() {
        return Err(named("there is none in it".to_owned()));
    }
    Ok(builder.with_root_certificates(store).with_no_client_auth())
}

/// Takes every certificate.
#[derive(Debug)]
struct Encrypts(Arc<CryptoProvider>);

impl ServerCertVerifier for Encrypts {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
