//! `lab router`: what can be changed in a router that runs.

use anyhow::Result;
use clap::Subcommand;
use comfy_table::presets;
use dscp::Dscp;
use emulator::FlowAsk;
use emulator::client::ControlClient;
use router::Rate;
use router::policy::{IpPrefix, IpProtocol, Match, OctetSize, PortRange, TableFlow};
use serde_json::json;
use std::process::ExitCode;
use text::TextTable;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The network; may be left out where one is up
    #[arg(long)]
    lab: Option<String>,
    /// The router
    router: String,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Its tables of flows
    Flow {
        #[command(subcommand)]
        ask: Ask,
    },
}

#[derive(Subcommand)]
enum Ask {
    /// A flow more, behind all others of the table; it holds for the next packet
    Add {
        #[command(flatten)]
        flow: Written,
        /// Right before this flow instead: the first one that matches is taken
        #[arg(long, value_name = "FLOW")]
        before: Option<String>,
    },
    /// Another flow in the place of the one of its name, whose packets that wait go on at its rate
    Replace(Written),
    /// A flow less
    Delete {
        /// The table
        table: String,
        /// The flow's name
        flow: String,
    },
    /// The flows there are
    List {
        /// Of this table only
        table: Option<String>,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A flow: packets that meet all that is given.
#[derive(clap::Args)]
struct Written {
    /// The table
    table: String,
    /// The flow's name
    flow: String,
    /// Its source lies in this prefix
    #[arg(long)]
    source: Option<IpPrefix>,
    /// Its destination lies in this prefix
    #[arg(long)]
    destination: Option<IpPrefix>,
    /// tcp, udp, icmp, ... or a number
    #[arg(long, value_parser = |text: &str| text.parse::<IpProtocol>())]
    protocol: Option<IpProtocol>,
    /// Its source port lies in this range, as in 5000-5004
    #[arg(long)]
    source_port: Option<PortRange>,
    /// Its destination port lies in this range
    #[arg(long)]
    destination_port: Option<PortRange>,
    /// It has one of these code points
    #[arg(long, value_delimiter = ',')]
    dscp: Vec<Dscp>,
    /// It came in at this interface
    #[arg(long)]
    interface: Option<String>,
    /// The code point it is given
    #[arg(long)]
    mark: Option<Dscp>,
    /// Its rate, as in 512kbit
    #[arg(long)]
    rate: Option<Rate>,
    /// Its burst, as in 3000 or 64kB
    #[arg(long)]
    burst: Option<OctetSize>,
}

impl Written {
    /// The table's name, and the flow.
    fn flow(self) -> (String, TableFlow) {
        let matches = Match {
            dscp: self.dscp,
            interface: self.interface,
            source: self.source,
            destination: self.destination,
            protocol: self.protocol,
            source_port: self.source_port,
            destination_port: self.destination_port,
            table: None,
        };
        let (mark, rate, burst) = (self.mark, self.rate, self.burst);
        (self.table, TableFlow { name: self.flow, matches, mark, rate, burst })
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = ControlClient::find(self.lab.as_deref())?;
        let What::Flow { ask } = self.what;
        let (ask, listed) = match ask {
            Ask::Add { flow, before } => {
                let (table, flow) = flow.flow();
                (FlowAsk::Add { table, flow, before }, None)
            }
            Ask::Replace(flow) => {
                let (table, flow) = flow.flow();
                (FlowAsk::Replace { table, flow }, None)
            }
            Ask::Delete { table, flow } => (FlowAsk::Delete { table, flow }, None),
            Ask::List { table, json } => (FlowAsk::List { table }, Some(json)),
        };
        let tables = client.flow(&self.router, ask)?;
        match listed {
            None => {}
            Some(true) => {
                let tables =
                    tables.iter().map(|(name, flows)| json!({ "name": name, "flows": flows }));
                let tables: Vec<_> = tables.collect();
                let all = json!({ "router": self.router, "tables": tables }).to_string();
                crate::verbs::print(&format!("{}\n", base::shown::json(&all)))?;
            }
            Some(false) => crate::verbs::print(&format!("{}\n", shown(&tables)))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(tables: &[(String, Vec<TableFlow>)]) -> TextTable {
    let mut shown = TextTable::new();
    shown
        .load_preset(presets::NOTHING)
        .set_header(["table", "flow", "match", "mark", "rate", "burst"]);
    for (table, flow) in
        tables.iter().flat_map(|(table, flows)| flows.iter().map(move |f| (table, f)))
    {
        let text = |text: Option<String>| text.unwrap_or_default();
        shown.add_row([
            table.clone(),
            flow.name.clone(),
            what(&flow.matches),
            text(flow.mark.map(|mark| mark.to_string())),
            text(flow.rate.map(|rate| rate.to_string())),
            text(flow.burst.map(|burst| burst.0.to_string())),
        ]);
    }
    shown
}

fn what(matches: &Match) -> String {
    let mut parts = Vec::new();
    let dscp: Vec<String> = matches.dscp.iter().map(Dscp::to_string).collect();
    let mut add = |key: &str, value: Option<String>| {
        parts.extend(value.map(|value| format!("{key} {value}")));
    };
    add("dscp", (!dscp.is_empty()).then(|| dscp.join(",")));
    add("interface", matches.interface.clone());
    add("source", matches.source.map(|prefix| prefix.to_string()));
    add("destination", matches.destination.map(|prefix| prefix.to_string()));
    add("protocol", matches.protocol.map(|protocol| protocol.to_string()));
    add("source port", matches.source_port.map(|ports| ports.to_string()));
    add("destination port", matches.destination_port.map(|ports| ports.to_string()));
    if parts.is_empty() { "all".to_owned() } else { parts.join(", ") }
}
