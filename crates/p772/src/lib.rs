//! P22 and STANAG 4406 (P772) contents: headings, precedences, body parts.
