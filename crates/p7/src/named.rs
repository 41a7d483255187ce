//! Numbers with names: INTEGER and ENUMERATED types of X.413, whose unknown numbers are kept.

/// Defines a type of named numbers, with its constants, its name and its display.
macro_rules! named_numbers {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $constant:ident = $number:literal $text:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl $name {
            $($(#[$doc])* pub const $constant: $name = $name($number);)*

            /// The standard's name of the number, if it has one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }

        /// The name, else the number.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }
    };
}

pub(crate) use named_numbers;
