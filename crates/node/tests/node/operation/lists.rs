//! Distribution lists: kept in the store, expanded from the queue, across crashes.

use base::Precedence::Routine;
use node::Input;
use node::event::Kind;
use node::lists::{List, ListChange, ListEdit, ListsError, ReportPolicy, SubmitPermission};
use node::operator::Operator;
use p1::flags::ReportRequest;
use testkit::{ACT, Events, NAPLES, NOTHING, Pair, address};

fn staff() -> String {
    address(NAPLES, "STAFF")
}

fn list(members: Vec<String>) -> List {
    List {
        address: staff(),
        members,
        submit: SubmitPermission::Anyone,
        reports: ReportPolicy::Originator,
        owner: None,
    }
}

fn change(pair: &mut Pair, change: ListChange) -> Result<(), ListsError> {
    let (change, by) = (Box::new(change), Operator { uid: 7, name: Some("ann".to_owned()) });
    pair.feed(NAPLES, Input::ChangeList { request: 3, change, by, try_only: false });
    pair.run(1);
    let (request, result) = pair.sites[NAPLES].lists_changed.pop().expect("an answer");
    assert_eq!(request, 3);
    result
}

fn edited(pair: &mut Pair, edit: ListEdit) -> Result<(), ListsError> {
    change(pair, ListChange::Change { address: staff(), edit })
}

fn joined() -> Pair {
    let mut pair = Pair::with_reports(41, NOTHING);
    let members = vec![address(NAPLES, "OPS"), address(ACT, "OPS")];
    change(&mut pair, ListChange::Add(list(members))).unwrap();
    pair
}

/// How many messages and reports OPS of Naples got.
fn at_home(pair: &Pair) -> (usize, usize) {
    let got = &pair.users[pair.sender].delivered;
    let reports = got.iter().filter(|d| matches!(d, testkit::Delivered::Report { .. })).count();
    (got.len() - reports, reports)
}

#[test]
fn a_message_to_a_list_reaches_its_members_at_both_sites() {
    let mut pair = joined();
    pair.report = ReportRequest::Report;
    pair.submit_to(&staff(), Routine, 300_000);
    pair.run(60);
    assert_eq!((pair.delivered(), at_home(&pair)), (vec![1], (1, 2)));
    pair.assert_empty();
    let ends: Vec<&str> = pair.events(Kind::Expanded).map(|event| &*event.detail).collect();
    let passed_on = ends.iter().filter(|end| end.contains("passes the report on")).count();
    assert_eq!((ends.len(), passed_on), (3, 2), "the message, and two reports: {ends:?}");
    let changed: Vec<_> = pair.events(Kind::ListChanged).collect();
    assert_eq!(changed[0].operator.as_ref().unwrap().0, "ann (uid 7)");
}

#[test]
fn a_list_and_what_waits_for_it_survive_a_crash_and_a_reload() {
    let mut pair = joined();
    edited(&mut pair, ListEdit { remove: vec![address(NAPLES, "OPS")], ..ListEdit::default() })
        .unwrap();
    pair.crash(NAPLES);
    pair.run(2);
    pair.bind_all();
    pair.network.configure(NAPLES, |_| {}, node::changes::EdgeChanges::default());
    pair.run(2);
    pair.submit_to(&staff(), Routine, 5_000);
    // It is killed at the moment when the message is accepted: nothing is expanded, or all.
    pair.until(Kind::Submitted, 1);
    pair.crash(NAPLES);
    pair.run(60);
    assert_eq!((pair.delivered(), at_home(&pair)), (vec![1], (0, 0)));
    pair.assert_empty();
}

#[test]
fn what_cannot_be_stored_changes_nothing() {
    let mut pair = joined();
    pair.sites[NAPLES].store.full = true;
    let edit = ListEdit { add: vec![address(ACT, "NOBODY")], ..ListEdit::default() };
    assert!(matches!(edited(&mut pair, edit), Err(ListsError::NotStored(_))));
    pair.sites[NAPLES].store.full = false;
    pair.submit_to(&staff(), Routine, 1_000);
    pair.run(60);
    assert_eq!((pair.delivered(), at_home(&pair)), (vec![1], (1, 0)));
}

#[test]
fn changes_that_are_wrong_are_refused_in_words() {
    let mut pair = joined();
    let error = |result: Result<(), ListsError>| result.unwrap_err().to_string();
    let again = change(&mut pair, ListChange::Add(list(vec![address(ACT, "OPS")])));
    assert!(error(again).contains("already"));
    let mut elsewhere = list(vec![address(ACT, "OPS")]);
    elsewhere.address = address(ACT, "STAFF");
    assert!(
        error(change(&mut pair, ListChange::Add(elsewhere))).contains("not an address of this MTA")
    );
    let edit = ListEdit { remove: vec![address(ACT, "OTHER")], ..ListEdit::default() };
    assert!(error(edited(&mut pair, edit)).contains("not a member"));
    let owner = ListEdit { reports: Some(ReportPolicy::Owner), ..ListEdit::default() };
    assert!(error(edited(&mut pair, owner)).contains("--owner"));
    let gone = ListChange::Remove { address: address(NAPLES, "NONE") };
    assert!(error(change(&mut pair, gone)).contains("there is no list"));
    change(&mut pair, ListChange::Remove { address: staff() }).unwrap();
    pair.submit_to(&staff(), Routine, 1_000);
    pair.run(30);
    assert_eq!((pair.delivered().len(), at_home(&pair)), (0, (0, 1)), "nobody's address now");
}

fn list_of(name: &str, members: Vec<String>) -> List {
    List { address: address(NAPLES, name), ..list(members) }
}

#[test]
fn a_list_expands_a_message_once_whatever_its_ways_and_restarts() {
    let mut pair = Pair::with_reports(43, NOTHING);
    let at = |name: &str| address(NAPLES, name);
    for (name, members) in [
        ("STAFF", vec![at("WEST"), at("EAST")]),
        ("WEST", vec![at("ALL"), at("EAST")]),
        ("EAST", vec![at("ALL"), at("WEST")]),
        ("ALL", vec![address(ACT, "OPS"), at("STAFF")]),
    ] {
        change(&mut pair, ListChange::Add(list_of(name, members))).unwrap();
    }
    for crash_after in [None, Some(1), Some(2), Some(4)] {
        let before = pair.events(Kind::Expanded).count();
        let delivered = pair.delivered().len();
        pair.submit_to(&staff(), Routine, 1_000);
        if let Some(expanded) = crash_after {
            pair.until(Kind::Expanded, before + expanded);
            pair.crash(NAPLES);
            pair.run(2);
            pair.bind_all();
        }
        pair.run(120);
        assert_eq!(pair.delivered().len() - delivered, 1, "{crash_after:?}");
        pair.assert_empty();
    }
}

#[test]
fn a_record_that_the_store_does_not_take_is_reported_and_stops_nothing() {
    let mut pair = joined();
    let many: Vec<String> = (0..300).map(|n| address(ACT, &format!("M{n}"))).collect();
    change(
        &mut pair,
        ListChange::Add(list_of("MANY", [many, vec![address(NAPLES, "OPS")]].concat())),
    )
    .unwrap();
    pair.sites[NAPLES].store.record_max = Some(10_000);
    pair.submit_to(&address(NAPLES, "MANY"), Routine, 1_000);
    pair.until(Kind::NonDelivery, 1);
    pair.sites[NAPLES].store.record_max = None;
    pair.run(60);
    assert_eq!((pair.delivered().len(), at_home(&pair)), (0, (1, 300)));
    pair.assert_empty();
    // Where not even the reports fit.
    pair.sites[NAPLES].store.record_max = Some(10_000);
    for _ in 0..5 {
        pair.submit_to(&address(NAPLES, "MANY"), Routine, 1_000);
    }
    pair.submit_to(&staff(), Routine, 1_000);
    pair.run(60);
    assert_eq!((pair.delivered().len(), at_home(&pair)), (1, (7, 300)));
    pair.assert_empty();
}

#[test]
fn what_waits_for_a_list_that_is_removed_is_reported() {
    for starts_without in [false, true] {
        let mut pair = joined();
        let removed = ListChange::Remove { address: staff() };
        pair.sites[NAPLES].store.unread = true;
        for _ in 0..8 {
            pair.submit_to(&staff(), Routine, 1_000);
        }
        pair.run(5);
        if starts_without {
            change(&mut pair, removed.clone()).unwrap();
        }
        pair.sites[NAPLES].store.unread = false;
        pair.crash(NAPLES);
        if !starts_without {
            // Some are expanded, and wait for the store; the others wait for them.
            pair.sites[NAPLES].store.full = true;
            pair.run(1);
            pair.sites[NAPLES].store.full = false;
            change(&mut pair, removed).unwrap();
        }
        pair.run(5);
        pair.bind_all();
        pair.run(200);
        let (messages, reports) = at_home(&pair);
        assert_eq!((messages + reports, pair.delivered().len()), (8, messages));
        assert!(reports >= if starts_without { 8 } else { 4 }, "{reports}");
        pair.assert_empty();
    }
}

#[test]
fn a_change_is_logged_with_what_is_other_than_before() {
    let mut pair = joined();
    let edit = ListEdit {
        add: (0..5).map(|n| address(ACT, &format!("M{n}"))).collect(),
        remove: vec![address(NAPLES, "OPS")],
        ..ListEdit::default()
    };
    edited(&mut pair, edit).unwrap();
    let edit = ListEdit {
        submit: Some(SubmitPermission::Only(vec![address(NAPLES, "OPS")])),
        reports: Some(ReportPolicy::Both),
        owner: Some(address(NAPLES, "OPS")),
        ..ListEdit::default()
    };
    edited(&mut pair, edit).unwrap();
    edited(&mut pair, ListEdit { owner: Some(address(NAPLES, "OPS")), ..ListEdit::default() })
        .unwrap();
    let details = pair.sites[NAPLES].details(Kind::ListChanged);
    let (staff, ops) = (staff(), address(NAPLES, "OPS"));
    let m = |n: usize| address(ACT, &format!("M{n}"));
    let (there, few) = (address(ACT, "OPS"), format!("{}, {}, {}", m(0), m(1), m(2)));
    assert_eq!(
        details,
        [
            format!("{staff} with 2 members ({ops}, {there})"),
            format!("{staff}: 5 members ({few}, ...) more; 1 members ({ops}) fewer"),
            format!(
                "{staff}: submit {ops}, was anyone; reports both, was originator; owner {ops}, was nobody"
            ),
            format!("{staff}: as it was"),
        ]
    );
}

/// Counted in steps, one for each address that is read.
#[cfg(debug_assertions)]
#[test]
fn a_change_costs_what_the_list_has_not_its_square() {
    let mut pair = joined();
    let of = |from: usize| (from..from + 2_400).map(|n| address(ACT, &format!("M{n}"))).collect();
    edited(&mut pair, ListEdit { add: of(0), ..ListEdit::default() }).unwrap();
    let edit = ListEdit { add: of(2_400), remove: of(0), ..ListEdit::default() };
    let change = Box::new(ListChange::Change { address: staff(), edit });
    let by = Operator { uid: 7, name: None };
    base::steps::taken();
    pair.feed(NAPLES, Input::ChangeList { request: 3, change, by, try_only: true });
    let steps = base::steps::taken();
    assert!(steps < 10_000, "{steps}");
}
