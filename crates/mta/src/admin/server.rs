//! The daemon's side of the admin socket.

use super::{Answer, Request};
use nix::sys::stat::{Mode, umask};
use node::status::Status;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Longest request, in octets.
const REQUEST_MAX: u64 = 4 << 10;

/// Administrators served at once.
const AT_ONCE: usize = 8;

/// Longest time an administrator may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request for the driver, with where to answer.
pub(crate) enum Asked {
    Status(oneshot::Sender<Status>),
    ReloadUsers(oneshot::Sender<()>),
    Stop(oneshot::Sender<()>),
}

/// The open socket. Dropping it removes it.
pub(crate) struct AdminServer {
    path: PathBuf,
    asked: mpsc::Receiver<Asked>,
    task: JoinHandle<()>,
}

impl AdminServer {
    /// Opens the socket, for the daemon's user only. What a daemon that crashed left there is
    /// removed; the caller holds the store's lock, so no other daemon uses it.
    pub(crate) fn open(path: &Path) -> io::Result<AdminServer> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_socket() => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(io::Error::new(
                        io::ErrorKind::AddrInUse,
                        "another daemon answers there",
                    ));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        check_directory(path)?;
        // Never there for others, not even for a moment.
        let umask = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        nix::sys::stat::umask(umask);
        let listener = bound?;
        let (questions, asked) = mpsc::channel(AT_ONCE);
        let task = tokio::spawn(serve(listener, questions));
        Ok(AdminServer { path: path.to_owned(), asked, task })
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Option<Asked> {
        self.asked.recv().await
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Who may write to its directory could put another socket there.
fn check_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = std::fs::metadata(directory)?.permissions().mode();
    // In a sticky directory nobody removes what is another's.
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("others may write to its directory (mode {:04o}): chmod go-w", mode & 0o7777),
        ));
    }
    Ok(())
}

async fn serve(listener: UnixListener, questions: mpsc::Sender<Asked>) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let own = nix::unistd::geteuid().as_raw();
    let mut denied = 0u64;
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let uid = stream.peer_cred().ok().map(|peer| peer.uid());
        let allowed = may(uid, own);
        if !allowed {
            denied += 1;
            // The first, and then fewer and fewer.
            if denied.is_power_of_two() {
                tracing::warn!(uid, denied, "a user without permission on the admin socket");
            }
        }
        let questions = allowed.then(|| questions.clone());
        tokio::spawn(async move {
            // Who hangs up or dawdles is no matter of ours.
            let _ = tokio::time::timeout(TIMEOUT, converse(stream, questions)).await;
            drop(turn);
        });
    }
}

/// The mode of the socket keeps others out; for any system that ignores it, and where somebody
/// changed it, the kernel's word on who connected decides (SO_PEERCRED).
fn may(uid: Option<u32>, own: u32) -> bool {
    uid.is_some_and(|uid| uid == own || uid == 0)
}

/// Answers one request; where there is nobody to ask, that it is not permitted.
async fn converse(stream: UnixStream, questions: Option<mpsc::Sender<Asked>>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(REQUEST_MAX)).read_line(&mut line).await?;
    let answer = match (questions, serde_json::from_str::<Request>(&line)) {
        (None, _) => Answer::Error("not permitted: only to the daemon's user and root".to_owned()),
        (Some(questions), Ok(request)) => {
            let answered = put(request, &questions).await;
            answered.unwrap_or_else(|| Answer::Error("the daemon is ending".to_owned()))
        }
        (Some(_), Err(error)) => Answer::Error(format!("not understood: {error}")),
    };
    let mut octets = serde_json::to_vec(&answer)?;
    octets.push(b'\n');
    write.write_all(&octets).await
}

async fn put(request: Request, questions: &mpsc::Sender<Asked>) -> Option<Answer> {
    let (sender, done) = oneshot::channel();
    match request {
        Request::Status => {
            let (sender, status) = oneshot::channel();
            questions.send(Asked::Status(sender)).await.ok()?;
            return Some(Answer::Status(Box::new(status.await.ok()?)));
        }
        Request::ReloadUsers => questions.send(Asked::ReloadUsers(sender)).await.ok()?,
        Request::Stop => questions.send(Asked::Stop(sender)).await.ok()?,
    }
    done.await.ok()?;
    Some(Answer::Done(request))
}

#[cfg(test)]
mod tests {
    use super::super::{AskError, ask};
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn one_line_asks_one_line_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let asked = |request| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || ask(&path, request))
        };
        assert!(matches!(asked(Request::Status).await.unwrap(), Err(AskError::NoDaemon { .. })));

        let mut server = AdminServer::open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let client = asked(Request::Status);
        let Some(Asked::Status(answer)) = server.next().await else { panic!() };
        let status = Status { mta: "MTA-NAPLES".to_owned(), ..Status::default() };
        answer.send(status.clone()).unwrap();
        assert_eq!(client.await.unwrap().unwrap(), Answer::Status(Box::new(status)));

        let client = asked(Request::Stop);
        let Some(Asked::Stop(answer)) = server.next().await else { panic!() };
        answer.send(()).unwrap();
        assert_eq!(client.await.unwrap().unwrap(), Answer::Done(Request::Stop));

        assert!(AdminServer::open(&path).is_err(), "one daemon only");
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn only_the_daemon_s_user_and_root_may() {
        assert!(may(Some(1_000), 1_000) && may(Some(0), 1_000));
        assert!(!may(Some(1_001), 1_000) && !may(None, 1_000) && !may(None, 0));
    }

    #[tokio::test]
    async fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let set = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o770, 0o707] {
            set(mode);
            let error = AdminServer::open(&path).err().unwrap();
            assert!(error.to_string().contains("chmod go-w"), "{error}");
        }
        set(0o1777);
        AdminServer::open(&path).unwrap();
        set(0o755);
        AdminServer::open(&path).unwrap();
    }

    #[tokio::test]
    async fn who_may_not_is_told_so() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let served = tokio::spawn(converse(ours, None));
        let (read, mut write) = theirs.into_split();
        write.write_all(b"{\"request\":\"stop\"}\n").await.unwrap();
        let mut answer = String::new();
        BufReader::new(read).read_line(&mut answer).await.unwrap();
        assert!(answer.starts_with("{\"error\":\"not permitted"), "{answer}");
        served.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn nonsense_is_answered_and_a_stale_socket_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let _server = AdminServer::open(&path).unwrap();
        for nonsense in ["{}\n", "\n", "{\"request\":\"dance\"}\n", "x", &"y".repeat(5_000)] {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(nonsense.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).await.unwrap();
            assert!(answer.starts_with("{\"error\":\"not understood"), "{nonsense:?}: {answer:?}");
        }
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(AdminServer::open(&dir.path().join("file")).is_err());
    }
}
