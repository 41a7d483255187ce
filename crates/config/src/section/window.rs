//! Values: lists of weekly time windows.

use crate::problem::Problems;
use crate::tree::Section;
use crate::value;
use base::Windows;
use toml::Spanned;

/// Reads a window or a list of them; `None` if the key is absent, or after adding an error.
pub(crate) fn windows(
    section: &mut Section<'_>,
    problems: &mut Problems,
    key: &'static str,
) -> Option<Spanned<Windows>> {
    let list = section.list(problems, key, &value::window)?;
    let span = list.span();
    match Windows::new(list.into_inner().into_iter().map(Spanned::into_inner).collect()) {
        Ok(windows) => Some(Spanned::new(span, windows)),
        Err(wrong) => {
            let message = format!("{key} of {}: {wrong}", section.name());
            let remedy = format!(
                "write 1 to {} windows such as \"mon-fri 06:00-18:00\" (UTC)",
                base::window::MAX_WINDOWS
            );
            problems.error(span, message, "here", remedy);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn read(toml: &str) -> (Option<String>, Vec<String>) {
        let table = DeTable::parse(toml).unwrap();
        let mut problems = Problems::default();
        let mut section = Section::new("the file", table.span(), table.get_ref());
        let read = windows(&mut section, &mut problems, "windows").map(|w| w.get_ref().to_string());
        section.finish(&mut problems);
        let report = problems.into_findings("f", toml);
        (read, report.problems.iter().map(|p| p.message.clone()).collect())
    }

    #[test]
    fn one_or_several_or_what_is_wrong() {
        assert_eq!(read("").0, None);
        assert_eq!(read("windows = '06:00-18:00'"), (Some("06:00-18:00".into()), vec![]));
        let two = "windows = ['mon 06:00-18:00', 'sat,sun 00:00-24:00']";
        assert_eq!(read(two).0.as_deref(), Some("mon 06:00-18:00; sat-sun 00:00-24:00"));
        let none = "windows of the file: a list without a window is never open";
        assert_eq!(read("windows = []"), (None, vec![none.to_owned()]));
        let (read_none, wrong) = read("windows = ['06:00-18:00', 'mon', 'tue 7:00-8:00']");
        assert_eq!((read_none, wrong.len()), (None, 2), "all are found in one pass: {wrong:?}");
    }
}
