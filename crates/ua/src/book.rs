//! The address book: short names for O/R addresses, and groups of them, in a TOML file that its user
//! also edits by hand.

use crate::country::is_country;
use crate::form;
use p1::names::{ORAddress, ORName};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Longest name, characters.
pub const MAX_NAME: usize = 64;
/// Most addresses that one text can stand for: as many recipients as an envelope has.
pub const MAX_EXPANDED: usize = 32_767;
/// Largest book, octets.
const MAX_BOOK: u64 = 16 << 20;

/// Why the book cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file cannot be read or written.
    #[error("cannot {doing} the address book {path}")]
    File {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The file is not a book.
    #[error("the address book {path} cannot be read: {error}")]
    Syntax {
        /// The file.
        path: String,
        /// What is wrong, and where.
        error: String,
    },
    /// A name that the book does not have, and that is not an address.
    #[error(
        "{0:?} is neither an O/R address nor a name in the address book: write /C=XX/.../S=NAME, or \
         see `xuxa book list`"
    )]
    Unknown(String),
    /// An invalid O/R address.
    #[error(transparent)]
    Form(#[from] form::FormError),
    /// A group that is in itself.
    #[error("the group {0:?} contains itself")]
    Circle(String),
    /// Too many addresses.
    #[error("{0:?} stands for more than 32767 addresses, which is what a message can have")]
    TooMany(String),
    /// An invalid name.
    #[error("invalid name {0:?}: 1 to 64 letters, digits, `.`, `_` and `-`")]
    Name(String),
    /// The name has an entry already.
    #[error("{0:?} is in the address book: remove it first")]
    Exists(String),
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A short name for one address, as it is written in the book.
    Address(String),
    /// A group: names and addresses.
    Group(Vec<String>),
}

/// The book, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    entries: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    #[serde(default)]
    address: BTreeMap<String, String>,
    #[serde(default)]
    group: BTreeMap<String, Vec<String>>,
}

/// A name is looked up without regard to case.
fn key(name: &str) -> String {
    name.to_lowercase()
}

/// Whether a text can be a name: then it is not an address, which has `=`.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "._-".contains(c);
    (1..=MAX_NAME).contains(&text.chars().count()) && text.chars().all(allowed)
}

impl Book {
    /// Reads a book; a file that does not exist is an empty one.
    ///
    /// # Errors
    /// The file cannot be read, or is not a book.
    pub fn read(path: &Path) -> Result<Book, BookError> {
        let shown = path.display().to_string();
        let failed = |error| BookError::File { doing: "read", path: shown.clone(), error };
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Book::default()),
            Err(error) => return Err(failed(error)),
            Ok(meta) if meta.len() > MAX_BOOK => {
                return Err(failed(io::Error::other("it is larger than 16 MiB")));
            }
            Ok(_) => {}
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        Book::parse(&text).map_err(|error| BookError::Syntax { path: shown.clone(), error })
    }

    /// Reads the text of a book.
    ///
    /// # Errors
    /// What is wrong, with its line where TOML states it.
    pub fn parse(text: &str) -> Result<Book, String> {
        let tables: Tables = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut entries = BTreeMap::new();
        let addresses = tables.address.into_iter().map(|(n, a)| (n, Entry::Address(a)));
        let groups = tables.group.into_iter().map(|(n, g)| (n, Entry::Group(g)));
        for (name, entry) in addresses.chain(groups) {
            if !is_name(&name) {
                return Err(BookError::Name(name).to_string());
            }
            if entries.insert(key(&name), entry).is_some() {
                return Err(format!("{name:?} is there twice: names are compared without case"));
            }
        }
        Ok(Book { entries })
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The names that begin with this text, without regard to case: for completion.
    pub fn beginning_with(&self, text: &str) -> Vec<&str> {
        let text = key(text);
        self.entries.keys().filter(|name| name.starts_with(&text)).map(String::as_str).collect()
    }

    /// The addresses that a text stands for: an O/R address itself, or what a name has. Each once,
    /// in the order of the book.
    ///
    /// # Errors
    /// An unknown name, an invalid address, or a group within itself.
    pub fn resolve(&self, text: &str) -> Result<Vec<ORName>, BookError> {
        let (mut found, mut open) = (Vec::new(), Vec::new());
        self.expand(text, &mut open, &mut found)?;
        Ok(found)
    }

    /// The one address that a text stands for.
    ///
    /// # Errors
    /// As [`Book::resolve`], or a group of several.
    pub fn resolve_one(&self, text: &str) -> Result<ORName, BookError> {
        let mut all = self.resolve(text)?.into_iter();
        match (all.next(), all.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(BookError::Unknown(format!("{text} (one address is needed)"))),
        }
    }

    fn expand(
        &self,
        text: &str,
        open: &mut Vec<String>,
        found: &mut Vec<ORName>,
    ) -> Result<(), BookError> {
        let text = text.trim();
        if !is_name(text) {
            let name = match text.contains('=') {
                true => form::address(text)?,
                false => return Err(BookError::Unknown(text.to_owned())),
            };
            if found.contains(&name) {
                return Ok(());
            }
            if found.len() >= MAX_EXPANDED {
                return Err(BookError::TooMany(open.first().cloned().unwrap_or_default()));
            }
            found.push(name);
            return Ok(());
        }
        let name = key(text);
        if open.contains(&name) {
            return Err(BookError::Circle(name));
        }
        let entry = self.entries.get(&name).ok_or_else(|| BookError::Unknown(text.to_owned()))?;
        match entry {
            Entry::Address(address) => self.expand(&as_address(address)?, open, found),
            Entry::Group(members) => {
                open.push(name);
                for member in members {
                    self.expand(member, open, found)?;
                }
                open.pop();
                Ok(())
            }
        }
    }

    /// The name of an address, if it has one.
    pub fn name_of(&self, address: &ORAddress) -> Option<&str> {
        let is_it = |entry: &Entry| match entry {
            Entry::Address(text) => {
                form::address(text).is_ok_and(|name| name.address.same_as(address))
            }
            Entry::Group(_) => false,
        };
        self.entries.iter().find(|(_, entry)| is_it(entry)).map(|(name, _)| name.as_str())
    }

    /// What is wrong with the entries: for each one, its name and the fault.
    pub fn faults(&self) -> Vec<(String, String)> {
        let mut faults = Vec::new();
        for (name, entry) in &self.entries {
            if let Err(error) = self.resolve(name) {
                faults.push((name.clone(), error.to_string()));
            }
            if let Entry::Address(text) = entry
                && let Ok(address) = form::address(text)
                && let Some(fault) = country_fault(&address.address)
            {
                faults.push((name.clone(), fault));
            }
        }
        faults
    }

    /// Every address in the book that can be read.
    fn addresses(&self) -> impl Iterator<Item = ORName> {
        let texts = self.entries.values().flat_map(|entry| match entry {
            Entry::Address(text) => std::slice::from_ref(text),
            Entry::Group(members) => members.as_slice(),
        });
        texts.filter_map(|text| form::address(text).ok())
    }

    /// Why a recipient's domain may be a mistake: a country code that nobody has, or a domain of which
    /// neither the book nor `known` has an address. An empty book knows no domains.
    pub fn doubts(&self, recipients: &[ORName], known: &[ORName]) -> Vec<String> {
        let domains: Option<BTreeSet<_>> = (!self.is_empty()).then(|| {
            self.addresses().chain(known.iter().cloned()).map(|n| domain(&n.address)).collect()
        });
        let mut doubts = BTreeSet::new();
        for recipient in recipients {
            let address = &recipient.address;
            let unknown = || {
                let domains = domains.as_ref()?;
                (!domains.contains(&domain(address))).then(|| {
                    format!("no address of the book or of a profile is in the domain of {address}")
                })
            };
            doubts.extend(country_fault(address).or_else(unknown));
        }
        doubts.into_iter().collect()
    }
}

/// An address in the book, which must be one: a short name there would be another entry's.
fn as_address(text: &str) -> Result<String, BookError> {
    match is_name(text.trim()) {
        true => Err(BookError::Unknown(text.to_owned())),
        false => Ok(text.to_owned()),
    }
}

fn country_fault(address: &ORAddress) -> Option<String> {
    let code = &address.country.as_ref()?.value;
    (!is_country(code)).then(|| {
        format!("{code:?} is neither a country code of ISO 3166 nor of X.121, in {address}")
    })
}

/// Country, ADMD and PRMD, as they are compared: without case.
fn domain(address: &ORAddress) -> [String; 3] {
    let part = |text: &Option<p1::Text>| {
        text.as_ref().map(|t| t.value.trim().to_ascii_uppercase()).unwrap_or_default()
    };
    [part(&address.country), part(&address.admd), part(&address.prmd)]
}

/// Adds an entry: one address is a short name, several texts are a group. What is in the file stays
/// as it is, comments too.
///
/// # Errors
/// An invalid name or address, a name that is taken, or a file that cannot be written.
pub fn add(path: &Path, name: &str, members: &[String], is_group: bool) -> Result<(), BookError> {
    if !is_name(name) {
        return Err(BookError::Name(name.to_owned()));
    }
    edit(path, |book, document| {
        if book.entries.contains_key(&key(name)) {
            return Err(BookError::Exists(name.to_owned()));
        }
        let mut resolved = Vec::new();
        for member in members {
            resolved.extend(book.resolve(member)?);
        }
        let (table, value) = match (is_group, members, resolved.as_slice()) {
            (false, [_], [one]) => ("address", toml_edit::value(one.address.to_string())),
            _ => {
                let members: toml_edit::Array = members.iter().map(String::as_str).collect();
                ("group", toml_edit::value(members))
            }
        };
        let entry = document.entry(table).or_insert_with(toml_edit::table);
        match entry.as_table_like_mut() {
            Some(table) => _ = table.insert(name, value),
            None => return Err(BookError::Name(table.to_owned())),
        }
        Ok(())
    })
}

/// Removes an entry. Groups that name it are left as they are: [`Book::faults`] reports them.
///
/// # Errors
/// An unknown name, or a file that cannot be written.
pub fn remove(path: &Path, name: &str) -> Result<(), BookError> {
    edit(path, |_, document| {
        for table in ["address", "group"] {
            let Some(table) = document.get_mut(table).and_then(|t| t.as_table_like_mut()) else {
                continue;
            };
            let written = table.iter().map(|(n, _)| n.to_owned()).find(|n| key(n) == key(name));
            if let Some(written) = written {
                table.remove(&written);
                return Ok(());
            }
        }
        Err(BookError::Unknown(name.to_owned()))
    })
}

/// Changes the file: all or nothing, durably, and one process at a time.
fn edit(
    path: &Path,
    change: impl FnOnce(&Book, &mut toml_edit::DocumentMut) -> Result<(), BookError>,
) -> Result<(), BookError> {
    let shown = path.display().to_string();
    let failed = |error| BookError::File { doing: "write", path: shown.clone(), error };
    let lock = path.with_extension("toml.lock");
    let lock = private(&lock).and_then(|file| file.lock().map(|()| file)).map_err(failed)?;
    let book = Book::read(path)?;
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    let mut document: toml_edit::DocumentMut = text
        .parse()
        .map_err(|error| BookError::Syntax { path: shown.clone(), error: format!("{error}") })?;
    change(&book, &mut document)?;
    replace(path, &document.to_string()).map_err(failed)?;
    drop(lock);
    Ok(())
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Writes the whole file beside it, and renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("toml.{}", std::process::id()));
    let write = || {
        let mut file = private(&new)?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        rename(&new, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[expect(clippy::disallowed_methods, reason = "the directory is synced at once")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    let directory = to.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new("."))).and_then(|d| d.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOK: &str = "# mine\n[address]\nops = \"/C=XX/ADMD=NATO/PRMD=ACT/S=OPS\" # watch\n\
        log = \"c=xx; a=nato; p=act; s=log;\"\n[group]\nstaff = [\"OPS\", \"log\", \"/C=IT/S=A\"]\n\
        all = [\"staff\", \"ops\"]\n";

    #[test]
    fn names_groups_and_addresses_are_resolved_once_each() {
        let book = Book::parse(BOOK).unwrap();
        let texts = |text: &str| -> Vec<String> {
            book.resolve(text).unwrap().iter().map(ToString::to_string).collect()
        };
        let ops = "/S=OPS/PRMD=ACT/ADMD=NATO/C=XX";
        assert_eq!(texts("Ops"), [ops]);
        let all = [ops, "/S=log/PRMD=act/ADMD=nato/C=XX", "/S=A/C=IT"];
        assert_eq!((texts("all"), texts("staff")), (all.map(str::to_owned).to_vec(), texts("all")));
        assert_eq!(texts("/C=XX/S=X"), ["/S=X/C=XX"]);
        assert_eq!(book.name_of(&form::address(ops).unwrap().address), Some("ops"));
        assert_eq!(book.beginning_with("L"), ["log"]);
        assert!(book.resolve("nobody").unwrap_err().to_string().contains("xuxa book list"));
        assert!(book.resolve_one("staff").is_err() && book.resolve_one("log").is_ok());
        assert!(book.faults().is_empty(), "{:?}", book.faults());
    }

    #[test]
    fn faults_and_doubts_are_named() {
        let book = Book::parse(
            "[address]\na = \"/C=UK/S=A\"\nb = \"C=\"\n[group]\nc = [\"c\"]\nd = [\"e\"]\n",
        )
        .unwrap();
        let faults: Vec<String> = book.faults().iter().map(|(n, f)| format!("{n}: {f}")).collect();
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[0].starts_with("a: \"UK\" is neither a country code"), "{faults:?}");
        assert!(faults[2].contains("contains itself") && faults[3].contains("\"e\""), "{faults:?}");
        let book = Book::parse(BOOK).unwrap();
        let name = |text: &str| form::address(text).unwrap();
        let recipients =
            [name("/C=XX/ADMD=NATO/PRMD=act/S=X"), name("/C=XX/ADMD=NATO/PRMD=ATC/S=OPS")];
        let doubts = book.doubts(&recipients, &[]);
        assert_eq!(doubts.len(), 1);
        assert!(doubts[0].contains("PRMD=ATC"), "{doubts:?}");
        assert!(book.doubts(&recipients, &[name("/C=XX/ADMD=NATO/PRMD=ATC/S=Y")]).is_empty());
        assert!(Book::default().doubts(&recipients, &[]).is_empty());
        assert_eq!(Book::default().doubts(&[name("/C=UK/S=A")], &[]).len(), 1);
        assert!(
            Book::parse("[address]\n\"a b\" = \"/C=XX/S=A\"").unwrap_err().contains("invalid name")
        );
        assert!(
            Book::parse("[address]\na = \"x\"\n[group]\nA = []").unwrap_err().contains("twice")
        );
        assert!(Book::parse("[adress]").is_err());
    }

    #[test]
    fn the_file_keeps_its_comments_and_many_writers_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("book.toml");
        assert!(Book::read(&path).unwrap().is_empty());
        fs::write(&path, BOOK).unwrap();
        let members = |all: &[&str]| all.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
        add(&path, "new", &members(&["c=gb; s=new"]), false).unwrap();
        add(&path, "two", &members(&["new", "ops"]), true).unwrap();
        assert!(matches!(add(&path, "NEW", &members(&["ops"]), false), Err(BookError::Exists(_))));
        assert!(add(&path, "bad", &members(&["nobody"]), false).is_err());
        std::thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || add(path, &format!("n{n}"), &["/C=XX/S=N".to_owned()], false));
            }
        });
        remove(&path, "LOG").unwrap();
        assert!(remove(&path, "log").is_err());
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("# mine") && text.contains("# watch"), "{text}");
        assert!(text.contains("new = \"/S=new/C=GB\""), "{text}");
        let book = Book::read(&path).unwrap();
        assert_eq!(book.entries().count(), 4 - 1 + 2 + 8);
        assert_eq!(book.faults().len(), 2, "staff and all name log");
    }
}
