//! Figures as one page without anything from elsewhere: its pictures are SVG within it.

use super::text::{duration, octets, precedence};
use super::{Figures, Row, Spread};
use base::shown;
use std::fmt::Write as _;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:62rem;margin:2rem auto;\
padding:0 1rem;color:#222;background:#fff}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}\
table{border-collapse:collapse;width:100%}th,td{padding:.25rem .5rem;border-bottom:1px solid #ddd;\
text-align:right;font-variant-numeric:tabular-nums}th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}\
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#222}";

/// Width of a picture, and of the names on its left.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 210.0;

/// Height of a row of the picture of durations.
const ROW: f64 = 26.0;

/// Text for HTML; what a browser or reader would obey is written out.
fn escaped(text: &str) -> String {
    let text = shown::line(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

impl Figures {
    /// As a page for this MTA.
    pub fn to_html(&self, mta: &str) -> String {
        let mta = escaped(mta);
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<title>Messages of {mta}</title>\n\
             <style>{STYLE}</style>\n<h1>Messages of {mta}</h1>\n<p>From {} until {}.",
            escaped(&self.since),
            escaped(&self.until)
        );
        if self.kills > 0 {
            let _ = write!(
                out,
                " The daemon was killed {} times: events before each may be missing.",
                self.kills
            );
        }
        if self.lost > 0 {
            let _ =
                write!(out, " {} events of this time were lost: counts are too low.", self.lost);
        }
        out.push_str("</p>\n<h2>From acceptance to the peer's confirm, or to delivery</h2>\n");
        self.durations(&mut out);
        out.push_str("<h2>Messages passed on over time</h2>\n");
        self.over_time(&mut out);
        out.push_str("<h2>All figures</h2>\n");
        self.table(&mut out);
        out.push_str("</html>\n");
        out
    }

    /// For each row a bar from p50 to p99 with a mark at p95, on a logarithmic scale.
    fn durations(&self, out: &mut String) {
        let rows: Vec<(&Row, Spread)> =
            self.rows.iter().filter_map(|row| Some((row, row.took?))).collect();
        let Some(longest) = rows.iter().map(|(_, spread)| spread.p99_us).max() else {
            out.push_str("<p>Nothing was passed on.</p>\n");
            return;
        };
        let shortest = rows.iter().map(|(_, spread)| spread.p50_us).min().unwrap_or(1).max(1);
        let low = (shortest as f64).log10().floor();
        let high = (longest as f64).log10().ceil().max(low + 1.0);
        let x = |us: u64| {
            let part = ((us.max(1) as f64).log10() - low) / (high - low);
            LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - 20.0)
        };
        let height = ROW * rows.len() as f64 + 30.0;
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"p50, p95 and p99 by precedence and peer\">"
        );
        for decade in low as i32..=high as i32 {
            let us = 10f64.powi(decade) as u64;
            let at = x(us);
            let bottom = height - 25.0;
            let _ = writeln!(
                out,
                "<path d=\"M{at:.1} 0V{bottom}\" stroke=\"#ddd\"/><text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                height - 8.0,
                duration(us)
            );
        }
        for (number, (row, spread)) in rows.iter().enumerate() {
            let top = ROW * number as f64;
            let middle = top + ROW / 2.0;
            let name: String =
                format!("{} {}", precedence(row), row.peer).chars().take(30).collect();
            let (p50, p95, p99) = (x(spread.p50_us), x(spread.p95_us), x(spread.p99_us));
            let _ = writeln!(
                out,
                "<g><title>{} messages: p50 {}, p95 {}, p99 {}</title><text x=\"0\" y=\"{:.1}\">{}</text>\
                 <path d=\"M{p50:.1} {middle}H{p99:.1}\" stroke=\"#7aa6d8\" stroke-width=\"8\"/>\
                 <circle cx=\"{p50:.1}\" cy=\"{middle}\" r=\"5\" fill=\"#1f5fa8\"/>\
                 <path d=\"M{p95:.1} {:.1}v14\" stroke=\"#1f5fa8\" stroke-width=\"2\"/>\
                 <circle cx=\"{p99:.1}\" cy=\"{middle}\" r=\"3.5\" fill=\"#c2571a\"/></g>",
                spread.count,
                duration(spread.p50_us),
                duration(spread.p95_us),
                duration(spread.p99_us),
                middle + 4.0,
                escaped(&name),
                middle - 7.0
            );
        }
        out.push_str(
            "</svg>\n<p>Blue dot: p50; line: p95; orange dot: p99. The scale is logarithmic.</p>\n",
        );
    }

    fn over_time(&self, out: &mut String) {
        let most = self.over_time.iter().copied().max().unwrap_or(0).max(1);
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} 180\" role=\"img\" aria-label=\"messages passed on over time\">"
        );
        let width = WIDTH / self.over_time.len().max(1) as f64;
        for (number, count) in self.over_time.iter().enumerate().filter(|(_, count)| **count > 0) {
            let height = 150.0 * *count as f64 / most as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#1f5fa8\"><title>{count}</title></rect>",
                number as f64 * width,
                155.0 - height,
                width * 0.85
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M0 155H{WIDTH}\" stroke=\"#888\"/><text x=\"0\" y=\"173\">{}</text>\
             <text x=\"{WIDTH}\" y=\"173\" text-anchor=\"end\">{}</text></svg>\n\
             <p>A bar stands for {}; the highest for {most} messages.</p>",
            escaped(&self.since),
            escaped(&self.until),
            duration(self.interval_us)
        );
    }

    fn table(&self, out: &mut String) {
        out.push_str(
            "<table><tr><th>Precedence<th>Peer<th>Accepted<th>Octets<th>Passed on<th>Octets\
             <th>p50<th>p95<th>p99<th>Held<th>Held p95<th>Expired<th>Rejected</tr>\n",
        );
        for row in &self.rows {
            let took = |us: fn(&Spread) -> u64, of: Option<Spread>| {
                of.as_ref().map_or_else(|| "-".to_owned(), |spread| duration(us(spread)))
            };
            let cells = [
                precedence(row).to_owned(),
                escaped(&row.peer),
                row.accepted.to_string(),
                octets(row.accepted_octets),
                row.passed_on.to_string(),
                octets(row.passed_on_octets),
                took(|s| s.p50_us, row.took),
                took(|s| s.p95_us, row.took),
                took(|s| s.p99_us, row.took),
                row.held.map_or(0, |held| held.count).to_string(),
                took(|s| s.p95_us, row.held),
                row.expired.to_string(),
                row.rejected.to_string(),
            ];
            out.push_str("<tr>");
            for cell in cells {
                let _ = write!(out, "<td>{cell}");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table>\n");
    }
}
