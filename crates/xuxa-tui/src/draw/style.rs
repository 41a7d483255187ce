//! Colours that also work without colour: each precedence has its name and a mark.

use base::Precedence;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Colours.
    pub has_colour: bool,
    /// Bold, dim and reversed text.
    pub has_attributes: bool,
    /// Characters beyond ASCII.
    pub has_unicode: bool,
}

impl Palette {
    /// Everything.
    pub const FULL: Palette = Palette { has_colour: true, has_attributes: true, has_unicode: true };

    /// From the environment: `NO_COLOR` (not empty) turns colours off, `TERM=dumb` attributes too, and
    /// a locale without UTF-8 leaves ASCII.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Palette {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_dumb = set("TERM").is_none_or(|term| term == "dumb");
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        let is_utf8 = |locale: String| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        };
        Palette {
            has_colour: set("NO_COLOR").is_none() && !is_dumb,
            has_attributes: !is_dumb,
            has_unicode: locale.is_some_and(is_utf8),
        }
    }

    /// How a precedence looks.
    pub(crate) fn precedence(self, precedence: Precedence) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match (precedence, self.has_colour) {
            (Precedence::Override, true) => bold.fg(Color::White).bg(Color::Magenta),
            (Precedence::Flash, true) => bold.fg(Color::White).bg(Color::Red),
            (Precedence::Override | Precedence::Flash, false) => {
                bold.add_modifier(Modifier::REVERSED)
            }
            (Precedence::Immediate, true) => bold.fg(Color::Yellow),
            (Precedence::Immediate, false) => bold,
            (Precedence::Priority, true) => Style::new().fg(Color::Cyan),
            (Precedence::Priority | Precedence::Routine, _) => Style::new(),
            (Precedence::Deferred, _) => Style::new().add_modifier(Modifier::DIM),
        }
    }

    /// Of the selected line.
    pub(crate) fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Of an unread line, and of heads.
    pub(crate) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Of labels and hints.
    pub(crate) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Of errors.
    pub(crate) fn error(self) -> Style {
        match self.has_colour {
            true => Palette::bold().fg(Color::Red),
            false => Palette::bold(),
        }
    }

    /// Of what is well.
    pub(crate) fn good(self) -> Style {
        if self.has_colour { Style::new().fg(Color::Green) } else { Style::new() }
    }

    /// Removes from a buffer what the terminal cannot show.
    pub(crate) fn reduce(self, buffer: &mut Buffer) {
        for cell in &mut buffer.content {
            if !self.has_colour {
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
            }
            if !self.has_attributes {
                cell.modifier = Modifier::empty();
            }
            if !self.has_unicode && !cell.symbol().is_ascii() {
                let ascii = match cell.symbol() {
                    "─" => "-",
                    "│" => "|",
                    "┌" | "┐" | "└" | "┘" => "+",
                    "…" => "~",
                    "·" => "-",
                    _ => "?",
                };
                cell.set_symbol(ascii);
            }
        }
    }
}

/// The name in military messages.
pub(crate) fn name(precedence: Precedence) -> &'static str {
    match precedence {
        Precedence::Override => "OVERRIDE",
        Precedence::Flash => "FLASH",
        Precedence::Immediate => "IMMEDIATE",
        Precedence::Priority => "PRIORITY",
        Precedence::Routine => "ROUTINE",
        Precedence::Deferred => "DEFERRED",
    }
}

/// A mark that carries the urgency where there is no colour.
pub(crate) fn mark(precedence: Precedence) -> &'static str {
    match precedence {
        Precedence::Override => "!!!",
        Precedence::Flash => " !!",
        Precedence::Immediate => "  !",
        Precedence::Priority | Precedence::Routine | Precedence::Deferred => "   ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(variables: &[(&str, &str)]) -> Palette {
        let found =
            |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Palette::from_environment(found)
    }

    #[test]
    fn the_environment_decides_what_is_shown() {
        let xterm = ("TERM", "xterm-256color");
        let utf8 = ("LANG", "C.UTF-8");
        assert_eq!(palette(&[xterm, utf8]), Palette::FULL);
        assert_eq!(palette(&[xterm, utf8, ("NO_COLOR", "")]), Palette::FULL);
        let plain = Palette { has_colour: false, ..Palette::FULL };
        assert_eq!(palette(&[xterm, utf8, ("NO_COLOR", "1")]), plain);
        let dumb = Palette { has_attributes: false, ..plain };
        assert_eq!(palette(&[("TERM", "dumb"), utf8]), dumb);
        assert!(!palette(&[xterm, utf8, ("LC_ALL", "POSIX")]).has_unicode);
    }
}
