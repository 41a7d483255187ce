//! HTML, of which every text is escaped by how it is made.

use base::shown;
use std::fmt::Write as _;

/// A page being written. Tags and names of attributes are the program's own; all else is text.
#[derive(Default)]
pub(super) struct Markup {
    text: String,
}

/// Attributes of an element.
pub(super) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    /// An element with what `inside` writes in it.
    pub(super) fn within(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Markup),
    ) {
        self.open(tag, attributes);
        inside(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
        if !matches!(tag, "a" | "b" | "span" | "small" | "td" | "th" | "code") {
            self.text.push('\n');
        }
    }

    /// An element with a text.
    pub(super) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.within(tag, attributes, |page| page.text(text));
    }

    /// An element that has no end.
    pub(super) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes.iter().filter(|of| **of != ("class", "")) {
            self.text.push(' ');
            self.text.push_str(name);
            // One without a value is on or off.
            if !value.is_empty() {
                self.text.push_str("=\"");
                self.text(value);
                self.text.push('"');
            }
        }
        self.text.push('>');
    }

    /// A text, escaped.
    pub(super) fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.text.push_str("&amp;"),
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&#39;"),
                // HTML has no control characters, and a text turns none but itself.
                c if shown::is_obeyed(c) && c != '\n' && c != '\t' => self.text.push('\u{fffd}'),
                c => self.text.push(c),
            }
        }
    }

    /// A formatted text.
    pub(super) fn format(&mut self, text: std::fmt::Arguments<'_>) {
        let mut printed = String::new();
        // Writing to memory does not fail.
        let _ = printed.write_fmt(text);
        self.text(&printed);
    }

    /// The page's own style; not escaped.
    pub(super) fn style(&mut self, css: &'static str) {
        self.text.push_str("<style>\n");
        self.text.push_str(css);
        self.text.push_str("</style>\n");
    }

    /// A picture drawn by `plot`, which escapes the texts in it. `label` describes it.
    pub(super) fn svg(&mut self, class: &'static str, label: &str, svg: &str) {
        let Some(rest) = svg.strip_prefix("<svg ") else { return };
        self.text.push_str("<svg role=\"img\" class=\"");
        self.text.push_str(class);
        self.text.push_str("\" aria-label=\"");
        self.text(label);
        self.text.push_str("\" ");
        self.text.push_str(rest.trim_end());
        self.text.push('\n');
    }

    /// The page.
    pub(super) fn done(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_text_is_made_of_it_stays_a_text() {
        let mut page = Markup::default();
        let evil = "</p><script>alert('1')</script>&\"\u{1b}\u{0}\u{202e}";
        page.element("p", &[("title", "\"><img src=x onerror=y>"), ("open", "")], evil);
        let html = page.done();
        let wanted = "<p title=\"&quot;&gt;&lt;img src=x onerror=y&gt;\" open>&lt;/p&gt;&lt;script&gt;\
                      alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;\u{fffd}\u{fffd}\u{fffd}</p>\n";
        assert_eq!(html, wanted);
    }

    #[test]
    fn only_a_picture_is_put_in_as_it_is() {
        let mut page = Markup::default();
        page.svg("wide", "a \"b\"", "<svg width=\"1\"></svg>\n");
        page.svg("wide", "", "<script></script>");
        let wanted =
            "<svg role=\"img\" class=\"wide\" aria-label=\"a &quot;b&quot;\" width=\"1\"></svg>\n";
        assert_eq!(page.done(), wanted);
    }
}
