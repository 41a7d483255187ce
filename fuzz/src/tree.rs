//! BER as a tree that can be changed and written again, with the lengths of all that is around.

use base::ber::{Header, Length, MAX_DEPTH, Tag, universal};

/// One element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its tag.
    pub tag: Tag,
    /// Its content.
    pub content: Content,
    /// The form of its length.
    pub form: Form,
}

/// The content of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Octets.
    Primitive(Vec<u8>),
    /// Elements.
    Constructed(Vec<Node>),
}

/// The form of a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Definite, shortest.
    Definite,
    /// Definite, with so many length octets (1 to 8).
    Padded(u8),
    /// Indefinite (wrong where the element is primitive).
    Indefinite,
    /// This number, whatever is in it.
    Wrong(u64),
}

/// The elements that `octets` are; `None` if they are not BER to the last octet.
pub fn parse(octets: &[u8]) -> Option<Vec<Node>> {
    let (nodes, rest) = elements(octets, false, 0)?;
    (rest.is_empty() && !nodes.is_empty()).then_some(nodes)
}

fn elements(mut octets: &[u8], until_end: bool, depth: usize) -> Option<(Vec<Node>, &[u8])> {
    let mut nodes = Vec::new();
    while !octets.is_empty() {
        let header = Header::parse(octets).ok()??;
        let after = octets.get(header.size..)?;
        if header.is_end_of_contents() {
            return until_end.then_some((nodes, after));
        }
        if depth > MAX_DEPTH + 8 {
            return None;
        }
        let (content, rest, form) = match header.length {
            Length::Indefinite => {
                let (inner, rest) = elements(after, true, depth + 1)?;
                (Content::Constructed(inner), rest, Form::Indefinite)
            }
            Length::Definite(n) => {
                let (inner, rest) = after.split_at_checked(usize::try_from(n).ok()?)?;
                let content = if header.constructed {
                    Content::Constructed(elements(inner, false, depth + 1)?.0)
                } else {
                    Content::Primitive(inner.to_vec())
                };
                (content, rest, Form::Definite)
            }
        };
        nodes.push(Node { tag: header.tag, content, form });
        octets = rest;
    }
    (!until_end).then_some((nodes, octets))
}

/// Writes elements.
pub fn write(nodes: &[Node]) -> Vec<u8> {
    let mut out = Vec::new();
    nodes.iter().for_each(|node| node.write(&mut out));
    out
}

impl Node {
    fn write(&self, out: &mut Vec<u8>) {
        let (constructed, content) = match &self.content {
            Content::Primitive(octets) => (false, octets.clone()),
            Content::Constructed(nodes) => (true, write(nodes)),
        };
        let length = content.len() as u64;
        match self.form {
            Form::Definite => {
                Header::write(self.tag, constructed, Length::Definite(length), out);
            }
            Form::Indefinite => {
                Header::write(self.tag, constructed, Length::Indefinite, out);
            }
            Form::Wrong(n) => {
                Header::write(self.tag, constructed, Length::Definite(n), out);
            }
            Form::Padded(count) => {
                Header::write(self.tag, constructed, Length::Definite(0), out);
                out.pop();
                let count = usize::from(count).clamp(1, 8);
                out.push(0x80 | count as u8);
                out.extend(length.to_be_bytes().iter().skip(8 - count));
            }
        }
        out.extend_from_slice(&content);
        if self.form == Form::Indefinite {
            out.extend_from_slice(&[0, 0]);
        }
    }

    /// This element in pieces: a constructed string of segments (X.690 8.7.3).
    pub fn segmented(&self, at: usize) -> Node {
        let Content::Primitive(octets) = &self.content else { return self.clone() };
        let (a, b) = octets.split_at(at.min(octets.len()));
        // Segments are of the string's type where it is universal, else OCTET STRINGs.
        let tag =
            if self.tag == universal::BIT_STRING { self.tag } else { universal::OCTET_STRING };
        let segment = |octets: &[u8]| Node {
            tag,
            content: Content::Primitive(octets.to_vec()),
            form: Form::Definite,
        };
        let content = Content::Constructed(vec![segment(a), segment(b)]);
        Node { tag: self.tag, content, form: Form::Indefinite }
    }

    /// The elements in it.
    pub fn children(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.content {
            Content::Primitive(_) => None,
            Content::Constructed(nodes) => Some(nodes),
        }
    }
}

/// How many elements, all levels counted.
pub fn count(nodes: &[Node]) -> usize {
    let inner = |node: &Node| match &node.content {
        Content::Primitive(_) => 0,
        Content::Constructed(nodes) => count(nodes),
    };
    nodes.iter().map(|node| 1 + inner(node)).sum()
}

/// Finds the element of this number, in the order of their first octets, and hands it to `change`
/// with the list it stands in and its place there.
pub fn visit(
    nodes: &mut Vec<Node>,
    mut number: usize,
    change: &mut dyn FnMut(&mut Vec<Node>, usize),
) {
    for at in 0..nodes.len() {
        if number == 0 {
            return change(nodes, at);
        }
        number -= 1;
        if let Some(children) = nodes.get_mut(at).and_then(Node::children) {
            let inside = count(children);
            if number < inside {
                return visit(children, number, change);
            }
            number -= inside;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_it_reads_and_mends_the_lengths() {
        let octets = [0x30, 7, 0x31, 0x80, 0x02, 1, 5, 0, 0, 0x04, 0];
        let mut nodes = parse(&octets).unwrap();
        assert_eq!((count(&nodes), write(&nodes)), (4, octets.to_vec()));
        visit(&mut nodes, 2, &mut |list, at| list[at].content = Content::Primitive(vec![1, 2]));
        let expected = [0x30, 8, 0x31, 0x80, 0x02, 2, 1, 2, 0, 0, 0x04, 0];
        assert_eq!(write(&nodes), expected);
        assert_eq!(parse(&octets[..10]), None);
    }

    #[test]
    fn segments_a_string() {
        let nodes = parse(&[0x04, 2, b'a', b'b']).unwrap();
        let expected = [0x24, 0x80, 0x04, 1, b'a', 0x04, 1, b'b', 0, 0];
        assert_eq!(write(&[nodes[0].segmented(1)]), expected);
    }
}
