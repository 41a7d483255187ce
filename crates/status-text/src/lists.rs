//! Distribution lists: a table of all, and one in full.

use node_api::api::lists::{List, ReportPolicy, SubmitPermission};
use tables::{dash, table, trimmed};

/// A line for each list.
#[must_use]
pub fn overview(lists: &[List]) -> String {
    if lists.is_empty() {
        return "there is no distribution list: `mta list add` adds one\n".to_owned();
    }
    let mut rows = table(["LIST", "MEMBERS", "SUBMIT", "REPORTS"]);
    for list in lists {
        rows.add_row([
            list.address.clone(),
            list.members.len().to_string(),
            submit(&list.submit),
            reports(list.reports).to_owned(),
        ]);
    }
    trimmed(&rows)
}

fn submit(permission: &SubmitPermission) -> String {
    match permission {
        SubmitPermission::Anyone => "anyone".to_owned(),
        SubmitPermission::Members => "members".to_owned(),
        SubmitPermission::Only(all) => format!("{} addresses", all.len()),
    }
}

fn reports(policy: ReportPolicy) -> &'static str {
    match policy {
        ReportPolicy::Originator => "originator",
        ReportPolicy::Owner => "owner",
        ReportPolicy::Both => "both",
        ReportPolicy::Nobody => "nobody",
    }
}

/// All of a list, a member a line.
#[must_use]
pub fn in_full(list: &List) -> String {
    let mut text = format!("list     {}\n", list.address);
    text.push_str(&format!("owner    {}\n", list.owner.clone().unwrap_or_else(dash)));
    text.push_str(&format!("reports  {}\n", reports(list.reports)));
    match &list.submit {
        SubmitPermission::Only(all) => {
            all.iter().for_each(|who| text.push_str(&format!("submit   {who}\n")));
        }
        other => text.push_str(&format!("submit   {}\n", submit(other))),
    }
    list.members.iter().for_each(|member| text.push_str(&format!("member   {member}\n")));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_as_text() {
        let list = List {
            address: "/C=IT/ADMD=NET/PRMD=NAPLES/CN=staff/".to_owned(),
            members: vec!["/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS/".to_owned(); 2],
            submit: SubmitPermission::Only(vec!["/C=IT/".to_owned()]),
            reports: ReportPolicy::Both,
            owner: Some("/C=IT/ADMD=NET/PRMD=NAPLES/S=OPS/".to_owned()),
        };
        let text = format!("{}\n{}", overview(std::slice::from_ref(&list)), in_full(&list));
        insta::assert_snapshot!(text);
        assert!(overview(&[]).contains("mta list add"));
    }
}
