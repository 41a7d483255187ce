//! The daemon's side of the admin socket.

use super::{Answer, DrainOrder, ItemStatus, Reloaded, Request};
use crate::backup::BackupReport;
use crate::config::whole_address;
use base::EntryId;
use nix::sys::stat::{Mode, umask};
use node::channel_order::{ChannelOrder, ChannelOutcome};
use node::connect::ConnectOutcome;
use node::listing::{ListingError, QueuePage, QueueRequest};
use node::lists::{List, ListChange, ListsError};
use node::mailbox::{Rule, Rules};
use node::mailbox_view::MailboxView;
use node::minimize::MinimizeOrder;
use node::names::NameError;
use node::operator::{Act, ActError, ActOutcome, Operator};
use node::status::{ClockStatus, MinimizeStatus, Status};
use site_view::{ElsewherePage, ElsewhereRequest};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store_check::StoreReport;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Longest request, in octets.
const MAX_REQUEST: u64 = 64 << 10;

/// Clients served at the same time.
const AT_ONCE: usize = 8;

/// Longest time for one client, from connect to close.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Longest wait for the driver's answer. After that the client gets an error.
const ANSWER: Duration = Duration::from_secs(10);

/// Longest wait for a channel to open, within [`TIMEOUT`].
const OPENING: Duration = Duration::from_secs(8);

/// Between two looks at mailboxes that are being opened, and how many there are.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const LOOKS: u32 = 60;

/// A request for the driver, with the channel for its answer.
pub(crate) enum AdminRequest {
    Status(oneshot::Sender<Status>),
    Reload {
        dry_run: bool,
        answer: oneshot::Sender<Reloaded>,
    },
    Queue(QueueRequest, oneshot::Sender<Result<QueuePage, ListingError>>),
    Elsewhere(ElsewhereRequest, oneshot::Sender<Result<ElsewherePage, String>>),
    /// Which nodes have these entries, of those that other nodes have.
    Owners(Vec<EntryId>, oneshot::Sender<BTreeMap<EntryId, String>>),
    Operate {
        entries: Vec<EntryId>,
        act: Act,
        by: Operator,
        answer: oneshot::Sender<Operated>,
    },
    Mailboxes(oneshot::Sender<Status>),
    Mailbox(String, oneshot::Sender<Option<MailboxView>>),
    Purge {
        mailbox: String,
        rules: Rules,
        try_only: bool,
        answer: oneshot::Sender<Result<u64, String>>,
    },
    Unregister {
        mailbox: String,
        by: Operator,
        answer: oneshot::Sender<Operated>,
    },
    Lists(oneshot::Sender<Vec<List>>),
    ChangeList {
        change: Box<ListChange>,
        by: Operator,
        try_only: bool,
        answer: oneshot::Sender<ListsChanged>,
    },
    /// For the log: who ordered what, and its outcome.
    Audit {
        by: Operator,
        order: String,
        outcome: String,
    },
    Minimize {
        order: MinimizeOrder,
        by: Operator,
        answer: oneshot::Sender<Result<Vec<MinimizeStatus>, NameError>>,
    },
    AcceptClock(Operator, oneshot::Sender<Option<ClockStatus>>),
    Connect(String, oneshot::Sender<Result<ConnectOutcome, NameError>>),
    Order {
        channel: String,
        order: ChannelOrder,
        at_once: bool,
        dry_run: bool,
        by: Operator,
        answer: oneshot::Sender<Result<ChannelOutcome, String>>,
    },
    CheckStore {
        begin: bool,
        rate: Option<u64>,
        answer: oneshot::Sender<StoreReport>,
    },
    BackUp {
        begin: Option<PathBuf>,
        rate: Option<u64>,
        answer: oneshot::Sender<BackupReport>,
    },
    ReloadUsers(oneshot::Sender<()>),
    Drain(DrainOrder, oneshot::Sender<Result<(), String>>),
    Stop(oneshot::Sender<()>),
}

/// The outcome for each entry, or why nothing was changed.
pub(crate) type Operated = Result<Vec<(EntryId, ActOutcome)>, ActError>;

/// All lists afterwards, or why nothing was changed.
pub(crate) type ListsChanged = Result<Vec<List>, ListsError>;

/// The open socket. Dropping it removes the socket file.
pub(crate) struct AdminServer {
    path: PathBuf,
    asked: mpsc::Receiver<AdminRequest>,
    task: JoinHandle<()>,
}

impl AdminServer {
    /// Opens the socket for the daemon's user only. Removes a socket left by a daemon that
    /// crashed: the caller holds the store's lock, so no other daemon uses it.
    pub(crate) fn open(path: &Path) -> io::Result<AdminServer> {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.file_type().is_socket() => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(io::Error::new(
                        io::ErrorKind::AddrInUse,
                        "another daemon answers there",
                    ));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "not a socket")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        check_directory(path)?;
        // Set before bind, so that the socket never exists with a wider mode.
        let umask = umask(Mode::from_bits_truncate(0o177));
        let bound = UnixListener::bind(path);
        nix::sys::stat::umask(umask);
        let listener = bound?;
        let (questions, asked) = mpsc::channel(AT_ONCE);
        let task = tokio::spawn(serve(listener, questions));
        Ok(AdminServer { path: path.to_owned(), asked, task })
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Option<AdminRequest> {
        self.asked.recv().await
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Any user who owns the socket's directory or may write to it could replace the socket.
fn check_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let meta = std::fs::metadata(directory)?;
    let own = nix::unistd::geteuid().as_raw();
    match unsafe_directory(meta.uid(), own, meta.permissions().mode()) {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        None => Ok(()),
    }
}

fn unsafe_directory(owner: u32, own: u32, mode: u32) -> Option<String> {
    if owner != own && owner != 0 {
        return Some(format!(
            "its directory is user {owner}'s, not the daemon's or root's: chown it"
        ));
    }
    // In a directory with the sticky bit only a file's owner may remove it.
    (mode & 0o022 != 0 && mode & 0o1000 == 0).then(|| {
        format!("others may write to its directory (mode {:04o}): chmod go-w", mode & 0o7777)
    })
}

async fn serve(listener: UnixListener, questions: mpsc::Sender<AdminRequest>) {
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let own = nix::unistd::geteuid().as_raw();
    let mut denied = 0u64;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let uid = stream.peer_cred().ok().map(|peer| peer.uid());
        if !may(uid, own) {
            denied += 1;
            // Log the first refusal, then at powers of two.
            if denied.is_power_of_two() {
                tracing::warn!(uid, denied, "a user without permission on the admin socket");
            }
            deny(stream);
            continue;
        }
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let questions = questions.clone();
        let by = operator(uid.unwrap_or(own));
        tokio::spawn(async move {
            // A client that closes early or is slow affects nobody else.
            let _ = tokio::time::timeout(TIMEOUT, converse(stream, by, questions)).await;
            drop(turn);
        });
    }
}

/// The socket's mode keeps other users out. The peer credentials (SO_PEERCRED) decide as well:
/// some systems ignore the mode of a socket, and somebody may have changed it.
fn may(uid: Option<u32>, own: u32) -> bool {
    uid.is_some_and(|uid| uid == own || uid == 0)
}

/// Refuses a client at once. It takes no slot and no time.
fn deny(stream: UnixStream) {
    let answer = Answer::Error("not permitted: only to the daemon's user and root".to_owned());
    if let (Ok(mut octets), Ok(mut stream)) = (serde_json::to_vec(&answer), stream.into_std()) {
        octets.push(b'\n');
        let _ = stream.write_all(&octets);
    }
}

/// Answers one request.
async fn converse(
    stream: UnixStream,
    by: Operator,
    questions: mpsc::Sender<AdminRequest>,
) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(MAX_REQUEST)).read_line(&mut line).await?;
    let request = serde_json::from_str::<Request>(&line);
    let order = request.as_ref().ok().and_then(Request::order);
    let answer = match request {
        Ok(request) => match tokio::time::timeout(ANSWER, put(request, &by, &questions)).await {
            Ok(answered) => {
                answered.unwrap_or_else(|| Answer::Error("the daemon is ending".to_owned()))
            }
            Err(_) if order.is_some() => Answer::InDoubt(format!(
                "in doubt: no answer within {} s. The order was given, and may be carried out later: look before you \
                 give it again. The disk is slow, or commits wait for standbys of the database (mta cluster status)",
                ANSWER.as_secs()
            )),
            Err(_) => Answer::Error(format!(
                "no answer within {} s: the daemon is busy, or its disk is slow; try again",
                ANSWER.as_secs()
            )),
        },
        Err(error) => Answer::Error(format!("not understood: {error}")),
    };
    if let Some(order) = order {
        let outcome = answer.outcome();
        let _ = questions.send(AdminRequest::Audit { by, order, outcome }).await;
    }
    let mut octets = serde_json::to_vec(&answer)?;
    octets.push(b'\n');
    write.write_all(&octets).await
}

/// The answer where nothing was done.
#[expect(clippy::needless_pass_by_value, reason = "a function for map_or_else")]
fn refusal(why: impl ToString) -> Answer {
    Answer::Error(why.to_string())
}

/// The user of this number, as this system names him.
fn operator(uid: u32) -> Operator {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid));
    Operator { uid, name: user.ok().flatten().map(|user| user.name) }
}

/// What this node does not have, another one may: it is named.
async fn name_owners(
    mut outcomes: Vec<(EntryId, ActOutcome)>,
    questions: &mpsc::Sender<AdminRequest>,
) -> Option<Vec<(EntryId, ActOutcome)>> {
    let is_unknown = |(_, outcome): &&(EntryId, ActOutcome)| *outcome == ActOutcome::Unknown;
    let unknown: Vec<EntryId> = outcomes.iter().filter(is_unknown).map(|(id, _)| *id).collect();
    if unknown.is_empty() {
        return Some(outcomes);
    }
    let (sender, owners) = oneshot::channel();
    questions.send(AdminRequest::Owners(unknown, sender)).await.ok()?;
    let owners = owners.await.ok()?;
    for (id, outcome) in &mut outcomes {
        if let (ActOutcome::Unknown, Some(owner)) = (&*outcome, owners.get(id)) {
            *outcome = ActOutcome::Refused(format!("node {owner} has it: order it there"));
        }
    }
    Some(outcomes)
}

async fn put(
    request: Request,
    by: &Operator,
    questions: &mpsc::Sender<AdminRequest>,
) -> Option<Answer> {
    let (sender, done) = oneshot::channel();
    match request.clone() {
        Request::Status => {
            let (sender, status) = oneshot::channel();
            questions.send(AdminRequest::Status(sender)).await.ok()?;
            return Some(Answer::Status(Box::new(status.await.ok()?)));
        }
        Request::Reload { dry_run } => {
            let (answer, reloaded) = oneshot::channel();
            questions.send(AdminRequest::Reload { dry_run, answer }).await.ok()?;
            return Some(Answer::Reloaded(Box::new(reloaded.await.ok()?)));
        }
        Request::Queue { asked } => {
            let (sender, page) = oneshot::channel();
            questions.send(AdminRequest::Queue(asked, sender)).await.ok()?;
            return Some(page.await.ok()?.map_or_else(refusal, Answer::Queue));
        }
        Request::Operate { entries, act, conditions: _ } => {
            let (answer, operated) = oneshot::channel();
            let by = by.clone();
            questions.send(AdminRequest::Operate { entries, act, by, answer }).await.ok()?;
            return Some(match operated.await.ok()? {
                Ok(outcomes) => Answer::Operated(name_owners(outcomes, questions).await?),
                Err(why) => refusal(why),
            });
        }
        Request::Elsewhere { asked } => {
            let (sender, page) = oneshot::channel();
            questions.send(AdminRequest::Elsewhere(asked, sender)).await.ok()?;
            return Some(page.await.ok()?.map_or_else(refusal, Answer::Elsewhere));
        }
        Request::Mailboxes => {
            let mut looks = tokio::time::interval(LOOK_EVERY);
            for left in (0..LOOKS).rev() {
                looks.tick().await;
                let (sender, status) = oneshot::channel();
                questions.send(AdminRequest::Mailboxes(sender)).await.ok()?;
                let status = status.await.ok()?;
                if left == 0 || status.mailboxes.iter().all(|mailbox| !mailbox.unopened) {
                    return Some(Answer::Status(Box::new(status)));
                }
            }
            return None;
        }
        Request::Mailbox { mailbox } => {
            let address = match whole_address(&mailbox) {
                Ok(address) => address,
                Err(error) => return Some(refusal(format!("{mailbox}: {error}"))),
            };
            let mut looks = tokio::time::interval(LOOK_EVERY);
            for left in (0..LOOKS).rev() {
                looks.tick().await;
                let (sender, found) = oneshot::channel();
                questions.send(AdminRequest::Mailbox(address.clone(), sender)).await.ok()?;
                let Some(found) = found.await.ok()? else {
                    let why = "there is no such mailbox: `mta mailbox list` and `mta user list` show them";
                    return Some(refusal(format!("{mailbox}: {why}")));
                };
                if left == 0 || !found.status.unopened {
                    return Some(Answer::Mailbox(Box::new(found)));
                }
            }
            return None;
        }
        Request::Purge { mailbox, status, older, try_only } => {
            let mailbox = match whole_address(&mailbox) {
                Ok(mailbox) => mailbox,
                Err(error) => return Some(refusal(format!("{mailbox}: {error}"))),
            };
            let status = status.map(ItemStatus::of_store);
            let rule = Rule { status, age: Duration::from_secs(older) };
            let rules = Rules::new(vec![rule]).unwrap_or_default();
            let (answer, purged) = oneshot::channel();
            questions.send(AdminRequest::Purge { mailbox, rules, try_only, answer }).await.ok()?;
            let Ok(purged) = tokio::time::timeout(OPENING, purged).await else {
                return Some(Answer::Purged(None));
            };
            return Some(purged.ok()?.map_or_else(refusal, |count| Answer::Purged(Some(count))));
        }
        Request::Unregister { mailbox } => {
            let mailbox = match whole_address(&mailbox) {
                Ok(mailbox) => mailbox,
                Err(error) => return Some(refusal(format!("{mailbox}: {error}"))),
            };
            let (answer, done) = oneshot::channel();
            let by = by.clone();
            questions.send(AdminRequest::Unregister { mailbox, by, answer }).await.ok()?;
            return Some(done.await.ok()?.map_or_else(refusal, Answer::Operated));
        }
        Request::Lists => {
            let (sender, lists) = oneshot::channel();
            questions.send(AdminRequest::Lists(sender)).await.ok()?;
            return Some(Answer::Lists(lists.await.ok()?));
        }
        Request::ChangeList { change, try_only } => {
            let (answer, changed) = oneshot::channel();
            let by = by.clone();
            let asked = AdminRequest::ChangeList { change, by, try_only, answer };
            questions.send(asked).await.ok()?;
            return Some(changed.await.ok()?.map_or_else(refusal, Answer::Lists));
        }
        Request::Minimize { order } => {
            let (sender, minimized) = oneshot::channel();
            let asked = AdminRequest::Minimize { order, by: by.clone(), answer: sender };
            questions.send(asked).await.ok()?;
            return Some(minimized.await.ok()?.map_or_else(refusal, Answer::Minimized));
        }
        Request::AcceptClock => {
            let (sender, doubt) = oneshot::channel();
            let asked = AdminRequest::AcceptClock(by.clone(), sender);
            questions.send(asked).await.ok()?;
            return Some(Answer::Clock(doubt.await.ok()?));
        }
        Request::Connect { channel } => {
            let (sender, connected) = oneshot::channel();
            questions.send(AdminRequest::Connect(channel, sender)).await.ok()?;
            let Ok(connected) = tokio::time::timeout(OPENING, connected).await else {
                return Some(Answer::Connected(ConnectOutcome::Opening));
            };
            return Some(connected.ok()?.map_or_else(refusal, Answer::Connected));
        }
        Request::Order { channel, order, at_once, dry_run } => {
            let (answer, ordered) = oneshot::channel();
            let by = by.clone();
            let asked = AdminRequest::Order { channel, order, at_once, dry_run, by, answer };
            questions.send(asked).await.ok()?;
            return Some(ordered.await.ok()?.map_or_else(refusal, Answer::Ordered));
        }
        Request::CheckStore { begin, rate } => {
            let (answer, report) = oneshot::channel();
            questions.send(AdminRequest::CheckStore { begin, rate, answer }).await.ok()?;
            return Some(Answer::Store(Box::new(report.await.ok()?)));
        }
        Request::BackUp { begin, rate } => {
            let (answer, report) = oneshot::channel();
            questions.send(AdminRequest::BackUp { begin, rate, answer }).await.ok()?;
            return Some(Answer::Backup(Box::new(report.await.ok()?)));
        }
        Request::ReloadUsers => questions.send(AdminRequest::ReloadUsers(sender)).await.ok()?,
        Request::Drain { order } => {
            let (sender, begun) = oneshot::channel();
            questions.send(AdminRequest::Drain(order, sender)).await.ok()?;
            return Some(begun.await.ok()?.map_or_else(refusal, |()| Answer::Done(request)));
        }
        Request::Stop => questions.send(AdminRequest::Stop(sender)).await.ok()?,
    }
    done.await.ok()?;
    Some(Answer::Done(request))
}

#[cfg(test)]
mod tests {
    use super::super::{AskError, ask, client};
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn one_line_asks_one_line_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let asked = |request| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || ask(&path, &request))
        };
        assert!(matches!(asked(Request::Status).await.unwrap(), Err(AskError::NoDaemon { .. })));

        let mut server = AdminServer::open(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let client = asked(Request::Status);
        let Some(AdminRequest::Status(answer)) = server.next().await else { panic!() };
        let status = Status { mta: "MTA-NAPLES".to_owned(), ..Status::default() };
        answer.send(status.clone()).unwrap();
        assert_eq!(client.await.unwrap().unwrap(), Answer::Status(Box::new(status)));

        let client = asked(Request::Stop);
        let Some(AdminRequest::Stop(answer)) = server.next().await else { panic!() };
        answer.send(()).unwrap();
        assert_eq!(client.await.unwrap().unwrap(), Answer::Done(Request::Stop));

        assert!(AdminServer::open(&path).is_err(), "one daemon only");
        drop(server);
        assert!(!path.exists());
    }

    /// A daemon that closes or hangs is distinguished from a socket of another user.
    #[test]
    fn each_failure_has_its_own_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let answer_with = |octets: &'static [u8]| {
            let listener = listener.try_clone().unwrap();
            let peer = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = io::BufReader::new(stream.try_clone().unwrap());
                io::BufRead::read_line(&mut asked, &mut String::new()).unwrap();
                stream.write_all(octets).unwrap();
            });
            let answer = ask(&path, &Request::Status);
            peer.join().unwrap();
            answer
        };
        for cut in [&b""[..], b"{\"status\":{", b"{\"error\":\"x\"}"] {
            let error = answer_with(cut).unwrap_err();
            assert!(matches!(error, AskError::Closed { .. }), "{error}");
            assert!(error.to_string().contains("before it had answered"), "{error}");
        }
        assert_eq!(answer_with(b"{\"error\":\"x\"}\n").unwrap(), Answer::Error("x".to_owned()));
        // The listener accepts and sends nothing.
        let waited = Duration::from_millis(10);
        let error = client::ask_within(&path, &Request::Status, waited).unwrap_err();
        assert!(matches!(error, AskError::Late { .. }), "{error}");
        assert!(error.to_string().contains("did not answer within 0.01 s"), "{error}");
    }

    #[test]
    fn only_the_daemon_s_user_and_root_may() {
        assert!(may(Some(1_000), 1_000) && may(Some(0), 1_000));
        assert!(!may(Some(1_001), 1_000) && !may(None, 1_000) && !may(None, 0));
    }

    #[test]
    fn whose_directory() {
        for (owner, mode, good) in [
            (7, 0o700, true),
            (0, 0o755, true),
            (0, 0o1777, true),
            (8, 0o700, false),
            (8, 0o1777, false),
            (7, 0o770, false),
        ] {
            assert_eq!(unsafe_directory(owner, 7, mode).is_none(), good, "{owner} {mode:o}");
        }
    }

    #[tokio::test]
    async fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let set = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for mode in [0o770, 0o707] {
            set(mode);
            let error = AdminServer::open(&path).err().unwrap();
            assert!(error.to_string().contains("chmod go-w"), "{error}");
        }
        set(0o1777);
        AdminServer::open(&path).unwrap();
        set(0o755);
        AdminServer::open(&path).unwrap();
    }

    #[tokio::test]
    async fn another_user_is_refused_with_a_reason() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // The client has sent nothing yet; the refusal does not wait for its request.
        deny(ours);
        let mut answer = String::new();
        BufReader::new(theirs).read_line(&mut answer).await.unwrap();
        assert!(answer.starts_with("{\"error\":\"not permitted"), "{answer}");
    }

    #[tokio::test]
    async fn nonsense_is_answered_and_a_stale_socket_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let _server = AdminServer::open(&path).unwrap();
        for nonsense in ["{}\n", "\n", "{\"request\":\"dance\"}\n", "x", &"y".repeat(70_000)] {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(nonsense.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).await.unwrap();
            assert!(answer.starts_with("{\"error\":\"not understood"), "{nonsense:?}: {answer:?}");
        }
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(AdminServer::open(&dir.path().join("file")).is_err());
    }
}
