//! Reports to a peer of 1984 and from it.

use super::*;

#[test]
fn reports_to_1984_and_from_it() {
    let mut alpha = beside(OF_1984);
    // To 1984: of a failure here, with the trace and the number.
    let failed = arriving(&mut alpha, &["C=XX;ADMD=;PRMD=alpha;S=Nobody"], |_| {});
    let [entry] = &failed.accepted.entries[..] else { panic!("{failed:?}") };
    assert_eq!(entry.record.next_hop, NextHop::Peer(BETA));
    assert!(report(entry).content.content_type.is_some());
    let MtsApduHead::Report(there) = read(&of_1984(&alpha, &entry.record, OF_1984)) else {
        panic!()
    };
    assert_eq!(failures(&there), [(1, Some((1, Some(0))))]);
    assert_eq!((there.content.content_type, there.envelope.extensions.0.len()), (None, 0));

    // A failure in a code that 1984 does not have, which happens behind alpha.
    let relayed = arriving(&mut alpha, &[CARTER], |_| {});
    let expired = alpha.expire(at(200_000), &relayed.accepted.entries[0].record);
    let mut record = expired.entries[0].record.clone();
    let MtsApduHead::Report(made) = &mut record.head else { panic!() };
    made.content.recipients[0].last_trace.report = p1::ReportType::NonDelivery {
        reason: p1::NonDeliveryReason::TRANSFER_FAILURE_FOR_SECURITY_REASON,
        diagnostic: Some(p1::Diagnostic::SECURITY_POLICY_VIOLATION),
    };
    let MtsApduHead::Report(there) = read(&of_1984(&alpha, &record, OF_1984)) else { panic!() };
    assert_eq!(failures(&there), [(1, Some((1, None)))]);

    // From 1984: beta reports the delivery of what alpha sent.
    let mut envelope = p2(&[BAKER]);
    envelope.recipients[0].report_request = ReportRequest::Report;
    let sent = submit(&mut alpha, &envelope).accepted.entries.remove(0);
    let mut beta = engine_of("beta", "mta2", &["Baker"], &[("", 3)]);
    let head = read(&of_1984(&alpha, &sent.record, OF_1984));
    let there = beta.accept(at(2), head, &content(1000), &[]).accepted;
    let delivered = beta.delivered(at(3), at(3), &there.entries[0].record);
    let back = read(&of_1984(&beta, &delivered.entries[0].record, OF_1984));
    let home = alpha.accept(at(4), back, &content(0), &[]).accepted;
    assert_eq!(home.entries[0].record.next_hop, NextHop::Mailbox(canonical(&address(SMITH))));
    assert_eq!(failures(report(&home.entries[0])), [(1, None)]);
    assert!(alpha.delivery_argument(at(5), &home.entries[0].record).is_some());
}

/// The originator has a common name; reports to him go where the attribute for it is agreed.
#[test]
fn a_report_whose_destination_has_no_form_is_discarded() {
    let nobody = "C=XX;ADMD=;PRMD=alpha;S=Nobody";
    let with_common_name = |head: &mut MtsApduHead| {
        let MtsApduHead::Message(e) = head else { panic!() };
        e.originator.address.set_common_name("Duty");
    };
    let mut alpha = beside(WITH_COMMON);
    let done = arriving(&mut alpha, &[nobody], with_common_name);
    let [entry] = &done.accepted.entries[..] else { panic!("{done:?}") };
    let MtsApduHead::Report(there) = read(&of_1984(&alpha, &entry.record, WITH_COMMON)) else {
        panic!()
    };
    assert_eq!(there.envelope.destination.address.domain_defined[0].kind, "Common");
    // Queued before the attribute was given up, it is discarded with words.
    alpha.forms.insert(BETA, OF_1984.into());
    assert!(alpha.would_lose_critical(&entry.record));
    let again = alpha.reroute(at(9), &entry.record, &[]);
    let [note] = &again.notes[..] else { panic!("{again:?}") };
    assert_eq!((note.kind, again.entries.len()), (NoteKind::ReportDiscarded, 0));
    assert!(note.detail.ends_with("a common name, has no form in the 1984 dialect"), "{note:?}");
    let ordered = alpha.reroute_by_order(at(9), &entry.record, Some(BETA), &[]);
    assert!(ordered.unwrap_err().ends_with("has no form in the 1984 dialect"));
    // To a modern peer it goes.
    assert!(alpha.reroute_by_order(at(9), &entry.record, Some(GAMMA), &[]).is_ok());
    let done = arriving(&mut alpha, &[nobody], with_common_name);
    assert_eq!(done.accepted.entries.len(), 0);
}

/// The content follows all else of the report, as in later editions.
#[test]
fn a_report_to_1984_returns_the_content() {
    let mut alpha = beside(OF_1984);
    let failed = arriving(&mut alpha, &["C=XX;ADMD=;PRMD=alpha;S=Nobody"], |head| {
        let MtsApduHead::Message(e) = head else { panic!() };
        e.indicators = PerMessageIndicators::CONTENT_RETURN_REQUEST;
    });
    let [entry] = &failed.accepted.entries[..] else { panic!("{failed:?}") };
    assert_eq!((entry.record.body, entry.record.size), (failed.accepted.body, 1000));
    let MtsApduHead::Report(there) = read(&of_1984(&alpha, &entry.record, OF_1984)) else {
        panic!()
    };
    assert_eq!(there.content.returned_content.map(|content| content.len()), Some(1000));
}
