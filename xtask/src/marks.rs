//! Tables in documents, between marks: `<!-- figures: NAME -->` and `<!-- end -->`.

use anyhow::{Context as _, Result, bail};

/// The page with other lines between `<!-- figures: NAME -->` and the next `<!-- end -->`.
///
/// # Errors
/// The page lacks one of these lines.
pub fn replace(page: &str, name: &str, by: &str) -> Result<String> {
    let begin = format!("<!-- figures: {name} -->\n");
    let Some((before, rest)) = page.split_once(&begin) else {
        bail!("the page has no line {:?}", begin.trim());
    };
    let Some((_, after)) = rest.split_once("<!-- end -->\n") else {
        bail!("the page has no line \"<!-- end -->\" after {:?}", begin.trim());
    };
    Ok(format!("{before}{begin}\n{}\n\n<!-- end -->\n{after}", by.trim_end()))
}

/// The names of all marks of a page, in their order.
pub fn names(page: &str) -> Vec<&str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("<!-- figures: ")?.strip_suffix(" -->"))
        .collect()
}

/// What stands between the marks of this name.
///
/// # Errors
/// The page lacks one of these lines.
pub fn between<'a>(page: &'a str, name: &str) -> Result<&'a str> {
    let begin = format!("<!-- figures: {name} -->\n");
    let rest = page.split_once(&begin).with_context(|| format!("no mark {name}"))?.1;
    Ok(rest.split_once("<!-- end -->\n").with_context(|| format!("no end of {name}"))?.0)
}

/// The rows of the tables between the marks of this name, without their heads.
///
/// # Errors
/// The page lacks one of these lines.
pub fn rows(page: &str, name: &str) -> Result<usize> {
    let tables = between(page, name)?.split("\n\n");
    let rows = |table: &str| table.lines().filter(|line| line.starts_with('|')).skip(2).count();
    Ok(tables.map(rows).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_go_between_their_marks_and_nowhere_else() {
        let page =
            "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n";
        let new = replace(page, "x", "new\n").unwrap();
        let whole =
            "a\n<!-- figures: x -->\n\nnew\n\n<!-- end -->\nb\n<!-- figures: y -->\n<!-- end -->\n";
        assert_eq!(new, whole);
        assert_eq!(replace(&new, "x", "new").unwrap(), whole, "as often as wanted");
        assert_eq!(names(page), ["x", "y"]);
        let error = replace(page, "z", "").unwrap_err().to_string();
        assert!(error.contains("figures: z"), "{error}");
    }

    #[test]
    fn a_part_without_a_row_is_empty() {
        let page =
            |part: &str| format!("<!-- figures: x -->\n{part}<!-- end -->\n| a |\n|--|\n| 1 |\n");
        let rows = |part: &str| rows(&page(part), "x").unwrap();
        assert_eq!(rows("\n| a |\n|--:|\n| 1 |\n| 2 |\n\n"), 2);
        assert_eq!(rows("b:\n\n| a |\n|---|\n| 1 |\n\nc:\n\n| a |\n|---|\n| 1 |\n\n"), 2);
        for empty in ["", "\n\n", "words\n", "\n| a | b |\n|---|--:|\n\n"] {
            assert_eq!(rows(empty), 0, "{empty:?}");
        }
    }
}
