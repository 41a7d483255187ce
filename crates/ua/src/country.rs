//! Country codes of O/R addresses: ISO 3166 alpha-2, or X.121 (X.402 18.3.4).

/// Officially assigned codes of ISO 3166-1 alpha-2.
const ASSIGNED: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN \
BO BQ BR BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE \
EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU \
ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY \
MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM \
PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS \
ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS \
YE YT ZA ZM ZW";

/// Whether a country-name can be one: assigned by ISO 3166, left by it to its users (AA, QM to QZ, XA
/// to XZ, ZZ: international organizations have XX), or a data country code of X.121, 200 to 799.
pub fn is_country(code: &str) -> bool {
    let upper = code.to_ascii_uppercase();
    match upper.as_bytes() {
        [b'A', b'A'] | [b'Z', b'Z'] | [b'X', b'A'..=b'Z'] | [b'Q', b'M'..=b'Z'] => true,
        [a, b] if a.is_ascii_uppercase() && b.is_ascii_uppercase() => {
            ASSIGNED.split_ascii_whitespace().any(|known| known == upper)
        }
        [b'2'..=b'7', b, c] => b.is_ascii_digit() && c.is_ascii_digit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_of_iso_3166_or_x121() {
        for code in ["IT", "it", "GB", "XX", "QM", "ZZ", "222", "799", "AX", "ZW"] {
            assert!(is_country(code), "{code}");
        }
        for code in ["", "I", "UK", "QL", "ITA", "122", "800", "2A2", " T", "\u{e9}T", "ZQ"] {
            assert!(!is_country(code), "{code}");
        }
        assert_eq!(ASSIGNED.split_ascii_whitespace().count(), 249);
    }
}
