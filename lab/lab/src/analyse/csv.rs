//! Files of comma-separated values: rows of flows and messages are written as they are complete, so
//! there is one for each however many there are.

use super::json::{kbit_s, ms, signed_ms, utc};
use ::analyse::{Analysis, Output, Summary};
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Files being written.
#[derive(Debug)]
pub(crate) struct Csv {
    flows: BufWriter<File>,
    flow_intervals: BufWriter<File>,
    messages: BufWriter<File>,
    message_intervals: BufWriter<File>,
    code_points: BufWriter<File>,
    code_point_intervals: BufWriter<File>,
    hops: BufWriter<File>,
    hop_intervals: BufWriter<File>,
    flow: u64,
    message: u64,
}

const FLOWS: &str = "flow,point,protocol,application,source,destination,begin,end,packets,ip_size,\
frame_size,payload_size,ip_kbit_s,dscp,marks,segments,retransmissions,lost_before_point,spurious,\
out_of_order,missing_size,duplicate_acks,rtt_count,rtt_min_ms,rtt_mean_ms,rtt_p50_ms,rtt_p95_ms,\
rtt_max_ms,received,expected,reordered,duplicates,jitter_mean_ms,over";
const MESSAGES: &str = "message,point,source,destination,mts_identifier,precedence,priority,begin,\
end,duration_ms,size,kbit_s,dscp,retransmissions,checkpoints,resumed,gaps,outcome";
const CODE_POINTS: &str = "point,dscp,dscp_name,packets,ip_size,frame_size,begin,end,ip_kbit_s,flows,\
segments,retransmissions,retransmitted_size,out_of_order,duplicate_acks,received,expected,rtt_count,\
rtt_min_ms,rtt_mean_ms,rtt_p50_ms,rtt_p95_ms,rtt_max_ms";
const HOPS: &str = "from,to,dscp,dscp_name,packets,lost,delay_count,delay_min_ms,delay_mean_ms,\
delay_p50_ms,delay_p95_ms,delay_max_ms,jitter_mean_ms,jitter_max_ms,remarked,bleached";

impl Csv {
    /// Into this directory, which is made where it is not there.
    ///
    /// # Errors
    /// It cannot be made or written to.
    pub(crate) fn create(directory: &Path) -> Result<Csv> {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        let file = |name: &str, header: &str| -> Result<BufWriter<File>> {
            let path = directory.join(name);
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            let mut writer = BufWriter::new(file);
            writeln!(writer, "{header}")?;
            Ok(writer)
        };
        Ok(Csv {
            flows: file("flows.csv", FLOWS)?,
            flow_intervals: file("flow-intervals.csv", "flow,at,interval_ms,kbit_s")?,
            messages: file("messages.csv", MESSAGES)?,
            message_intervals: file("message-intervals.csv", "message,at,interval_ms,kbit_s")?,
            code_points: file("dscp.csv", CODE_POINTS)?,
            code_point_intervals: file(
                "dscp-intervals.csv",
                "point,dscp,at,interval_ms,packets,ip_size,kbit_s,retransmissions,rtt_mean_ms",
            )?,
            hops: file("hops.csv", HOPS)?,
            hop_intervals: file(
                "hop-intervals.csv",
                "from,to,dscp,at,interval_ms,packets,delay_mean_ms",
            )?,
            flow: 0,
            message: 0,
        })
    }

    /// A row that is complete.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn push(&mut self, analysis: &Analysis, output: &Output) -> Result<()> {
        match output {
            Output::Flow(of) => {
                self.flow += 1;
                let marks: Vec<String> =
                    of.marks.iter().map(|(dscp, n)| format!("{dscp}:{n}")).collect();
                let most = of.marks.iter().max_by_key(|(_, packets)| *packets);
                let (tcp, numbered) = (of.tcp, of.numbered);
                let count = |of: fn(&::analyse::TcpCounts) -> u64| cell(tcp.as_ref().map(of));
                let mut line = vec![
                    self.flow.to_string(),
                    point(analysis, of.point),
                    of.protocol.to_string(),
                    of.application.name().unwrap_or_default().to_owned(),
                    of.source.to_string(),
                    of.destination.to_string(),
                    utc(of.span.0),
                    utc(of.span.1),
                    of.volume.packets.to_string(),
                    of.volume.octets.to_string(),
                    of.volume.frame_octets.to_string(),
                    of.payload_octets.to_string(),
                    cell(kbit_s(of.volume.octets, of.span.1.since(of.span.0))),
                    cell(most.map(|(dscp, _)| dscp.number())),
                    marks.join(" "),
                    count(|of| of.segments),
                    count(|of| of.retransmissions),
                    count(|of| of.lost_before),
                    count(|of| of.spurious),
                    count(|of| of.out_of_order),
                    count(|of| of.missing_octets),
                    count(|of| of.duplicate_acks),
                ];
                line.extend(summary(&of.round_trip));
                line.extend([
                    cell(numbered.map(|of| of.packets)),
                    cell(numbered.map(|of| of.expected)),
                    cell(numbered.map(|of| of.reordered)),
                    cell(numbered.map(|of| of.duplicates)),
                    cell(numbered.and_then(|of| of.jitter).map(|(_, mean)| ms(mean))),
                    of.over.name().to_owned(),
                ]);
                write(&mut self.flows, &line)?;
                intervals(&mut self.flow_intervals, self.flow, &of.series)
            }
            Output::Message(of) => {
                self.message += 1;
                let envelope = of.envelope.as_ref();
                let marks: Vec<String> =
                    of.marks.iter().map(|dscp| dscp.number().to_string()).collect();
                let nanos = of.span.1.since(of.span.0);
                let line = [
                    self.message.to_string(),
                    point(analysis, of.point),
                    of.source.to_string(),
                    of.destination.to_string(),
                    cell(envelope.map(|of| &of.identifier)),
                    cell(envelope.and_then(|of| of.precedence).map(|of| of.name())),
                    cell(envelope.and_then(|of| of.priority)),
                    utc(of.span.0),
                    utc(of.span.1),
                    ms(nanos as f64).to_string(),
                    of.octets.to_string(),
                    cell(kbit_s(of.octets, nanos)),
                    marks.join(" "),
                    of.retransmissions.to_string(),
                    of.checkpoints.to_string(),
                    of.resumed.to_string(),
                    of.gaps.to_string(),
                    of.outcome.name().to_owned(),
                ];
                write(&mut self.messages, &line)?;
                intervals(&mut self.message_intervals, self.message, &of.series)
            }
        }
    }

    /// What is known only at the end: code points, and the outcome of packets between points.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn finish(mut self, analysis: &Analysis) -> Result<()> {
        for (place, of) in analysis.aggregates() {
            let mut line = vec![
                point(analysis, place),
                of.dscp.number().to_string(),
                of.dscp.to_string(),
                of.volume.packets.to_string(),
                of.volume.octets.to_string(),
                of.volume.frame_octets.to_string(),
                utc(of.span.0),
                utc(of.span.1),
                cell(kbit_s(of.volume.octets, of.span.1.since(of.span.0))),
                of.flows.to_string(),
                of.tcp.segments.to_string(),
                of.tcp.retransmissions.to_string(),
                of.tcp.retransmitted_octets.to_string(),
                of.tcp.out_of_order.to_string(),
                of.tcp.duplicate_acks.to_string(),
                of.numbered.0.to_string(),
                of.numbered.1.to_string(),
            ];
            line.extend(summary(&of.round_trip));
            write(&mut self.code_points, &line)?;
            let width = of.series.width();
            for (at, bin) in of.series.iter() {
                let line = [
                    point(analysis, place),
                    of.dscp.number().to_string(),
                    utc(at),
                    ms(width as f64).to_string(),
                    bin.packets.to_string(),
                    bin.octets.to_string(),
                    cell(kbit_s(bin.octets, width)),
                    bin.retransmissions.to_string(),
                    cell(bin.round_trip.mean().map(ms)),
                ];
                write(&mut self.code_point_intervals, &line)?;
            }
        }
        for of in analysis.hops() {
            let ends =
                [point(analysis, of.from), point(analysis, of.to), of.dscp.number().to_string()];
            let remarked: Vec<String> =
                of.remarked.iter().map(|(dscp, n)| format!("{dscp}:{n}")).collect();
            let mut line = ends.to_vec();
            line.extend([of.dscp.to_string(), of.packets.to_string(), of.lost.to_string()]);
            line.extend(summary(&of.delay));
            line.extend([
                cell(of.jitter.map(|(mean, _)| ms(mean))),
                cell(of.jitter.map(|(_, most)| ms(most))),
                remarked.join(" "),
                of.bleached().to_string(),
            ]);
            write(&mut self.hops, &line)?;
            for (at, mean) in of.series.iter().filter(|(_, mean)| mean.count > 0) {
                let mut line = ends.to_vec();
                line.extend([
                    utc(at),
                    ms(of.series.width() as f64).to_string(),
                    mean.count.to_string(),
                    cell(mean.mean().map(ms)),
                ]);
                write(&mut self.hop_intervals, &line)?;
            }
        }
        let files = [
            self.flows,
            self.flow_intervals,
            self.messages,
            self.message_intervals,
            self.code_points,
            self.code_point_intervals,
            self.hops,
            self.hop_intervals,
        ];
        for mut file in files {
            file.flush()?;
        }
        Ok(())
    }
}

fn point(analysis: &Analysis, place: usize) -> String {
    analysis.points().get(place).map(|point| point.name.clone()).unwrap_or_default()
}

/// Empty means unknown.
fn cell(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn summary(of: &Summary) -> [String; 6] {
    let counted = |value: Option<f64>| cell(value.map(ms));
    [
        of.count().to_string(),
        cell(of.least().map(signed_ms)),
        counted(of.mean()),
        counted(of.percentile(0.5)),
        counted(of.percentile(0.95)),
        cell(of.most().map(signed_ms)),
    ]
}

fn intervals(file: &mut impl Write, of: u64, series: &::analyse::Series<u64>) -> Result<()> {
    let width = series.width();
    for (at, octets) in series.iter() {
        let rate = cell(kbit_s(*octets, width));
        let line = [of.to_string(), utc(at), ms(width as f64).to_string(), rate];
        write(file, &line)?;
    }
    Ok(())
}

/// A line; a cell with a comma, a quotation mark or a line's end is quoted (RFC 4180 2).
fn write(file: &mut impl Write, cells: &[String]) -> Result<()> {
    for (place, cell) in cells.iter().enumerate() {
        // Names of points and messages come from the capture.
        let cell = base::shown::line(cell);
        let comma = if place > 0 { "," } else { "" };
        if cell.contains([',', '"', '\n', '\r']) {
            write!(file, "{comma}\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            write!(file, "{comma}{cell}")?;
        }
    }
    Ok(writeln!(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut line = Vec::new();
        let cells = ["a", "b,c", "d\"e", ""].map(str::to_owned);
        write(&mut line, &cells).unwrap();
        assert_eq!(String::from_utf8(line).unwrap(), "a,\"b,c\",\"d\"\"e\",\n");
        let mut line = Vec::new();
        write(&mut line, &["a\u{1b}[2J\nforged,row\u{202e}".to_owned()]).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line, "\"a\\u{1b}[2J\\nforged,row\\u{202e}\"\n");
    }

    #[test]
    fn every_line_has_as_many_cells_as_its_header() {
        let summary = summary(&Summary::default()).len();
        assert_eq!(FLOWS.split(',').count(), 22 + summary + 6);
        assert_eq!(MESSAGES.split(',').count(), 18);
        assert_eq!(CODE_POINTS.split(',').count(), 17 + summary);
        assert_eq!(HOPS.split(',').count(), 6 + summary + 4);
    }
}
