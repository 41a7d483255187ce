//! Hexadecimal text: how inputs are kept, so that a change of one can be read.

/// Octets of hexadecimal digits. What follows `#` in a line is a comment, blanks are ignored, and
/// text in double quotes stands for itself; `None` for anything else.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for line in text.lines() {
        let code = line.split('#').next().unwrap_or_default();
        for (n, part) in code.split('"').enumerate() {
            if n % 2 == 1 {
                out.extend_from_slice(part.as_bytes());
                continue;
            }
            let digits: Vec<char> = part.chars().filter(|c| !c.is_whitespace()).collect();
            for pair in digits.chunks(2) {
                let text: String = pair.iter().collect();
                let octet = (text.len() == 2).then(|| u8::from_str_radix(&text, 16).ok())?;
                out.push(octet?);
            }
        }
    }
    Some(out)
}

/// Lines of 32 octets.
pub fn encode(octets: &[u8]) -> String {
    let line = |line: &[u8]| {
        let octets: Vec<String> = line.iter().map(|o| format!("{o:02x}")).collect();
        octets.join(" ") + "\n"
    };
    octets.chunks(32).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_and_what_people_write() {
        let octets: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&octets)), Some(octets));
        assert_eq!(decode("30 03 # a SEQUENCE\n 1601\"A\""), Some(vec![0x30, 3, 0x16, 1, b'A']));
        assert_eq!((decode("3"), decode("zz")), (None, None));
    }
}
