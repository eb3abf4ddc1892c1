//! The page: one file that asks nothing of any network, runs no script, and treats every word of
//! the run as hostile. Whatever comes from a model or a repository passes through [`text`].

use std::collections::BTreeSet;
use std::fmt::Write;

use lula_agents::effects::{Act, Tone};
use lula_agents::verdict::TestRunAttempt;
use lula_protocol::BudgetDimension;

use super::timeline::{TraceSpan, TraceVisit};
use super::{Trace, spoken};
use crate::standing::StandingTone;
use crate::story::facts::{TestTally, first_look, size, spend};
use crate::text::visible;
use lula_protocol::calendar::utc_text;

const STYLE: &str = include_str!("page.css");
/// Scripts, pictures, fonts, frames, forms and connections: none. Styles are those of the page.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Longest change that is shown whole.
const MAX_DIFF: usize = 1 << 20;
/// Most events in the record.
const MAX_EVENTS: usize = 5000;
/// Most tests of one list.
const MAX_TESTS: usize = 500;

/// Text that is nothing but text, in an element and in a quoted attribute.
pub(super) fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for line in raw.split_inclusive('\n') {
        let (line, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |line| (line, "\n"));
        for c in visible(line).chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                other => out.push(other),
            }
        }
        out.push_str(end);
    }
    out
}

/// The whole page as HTML.
pub(super) fn page(trace: &Trace) -> String {
    let mut out = String::new();
    let run = trace.known.progress.run.to_string();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} · {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        text(trace.standing().word()),
        text(&run)
    );
    head(&mut out, trace, &run);
    if let Some(picture) = trace.picture() {
        let _ = write!(out, "<section>\n<h2>Agents</h2>\n{picture}</section>\n");
    }
    timeline(&mut out, trace);
    tests(&mut out, trace);
    change(&mut out, trace);
    record(&mut out, trace);
    let _ = write!(
        out,
        "<footer>{} events, chained by hash up to <code>{}</code>. \
         <code>lula replay {run} --verify</code> derives them again.</footer>\n\
         </main>\n</body>\n</html>\n",
        trace.moments.len(),
        text(&trace.head),
    );
    out
}

fn head(out: &mut String, trace: &Trace, run: &str) {
    let standing = trace.standing();
    let tone = match standing.tone() {
        StandingTone::Good => "good",
        StandingTone::Bad => "bad",
        StandingTone::Active | StandingTone::Open => "warn",
    };
    let work = &trace.known.state;
    let _ = write!(
        out,
        "<header>\n<div class=\"top\"><span class=\"pill {tone}\">{}</span>\
         <span class=\"mono\">{}</span><span>{}</span></div>\n<h1>{}</h1>\n\
         <p class=\"summary\">{}</p>\n<dl class=\"facts\">\n",
        text(standing.word()),
        text(run),
        utc_text(trace.timeline.start_ms),
        text(&work.task.text),
        text(&trace.report.summary),
    );
    let mut fact = |name: &str, value: String| {
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", text(&value));
    };
    fact("time", spoken(trace.timeline.total_ms));
    let spent = |dimension| trace.report.spent.get(dimension).unwrap_or_default();
    if let Some(cost) = spend(&trace.report.spent) {
        fact("models", cost);
        let (read, wrote) = (
            spent(BudgetDimension::InputTokens),
            spent(BudgetDimension::OutputTokens),
        );
        fact("tokens read, written", format!("{read}, {wrote}"));
    } else {
        fact("model calls", "none".to_owned());
    }
    if let Some((by, _)) = &work.made {
        fact("made by", by.clone());
    }
    if let Some(evidence) = &work.evidence {
        let tally = |looked: &TestRunAttempt| {
            looked
                .results()
                .map(|results| TestTally::from(results).to_string())
        };
        if let (Some(before), Some(after)) = (tally(&evidence.before), tally(&evidence.after)) {
            fact("tests before", before);
            fact("tests after", after);
        }
        if let Some(first) = &evidence.first {
            fact("nearest tests", first_look(first));
        }
    }
    if let Some(proposal) = &work.proposal {
        fact("change", size(&proposal.diff, proposal.files.len()));
    }
    if !work.failures.is_empty() {
        fact("failed attempts", work.failures.len().to_string());
    }
    if let Some(delivered) = work.delivered_of(0) {
        let place = delivered
            .branch
            .as_deref()
            .or(delivered.directory.as_deref());
        fact("delivered", place.unwrap_or_default().to_owned());
    }
    if let Some(place) = work.place_of(0) {
        fact("base", place.origin.commit.chars().take(12).collect());
    }
    out.push_str("</dl>\n</header>\n");
}

/// What kind of work an act is: its colour.
fn tone(span: &TraceSpan) -> &'static str {
    if span.waiting {
        return "wait";
    }
    match Act::named(&span.name).map_or(Tone::Look, |act| act.tone) {
        Tone::Think => "think",
        Tone::Test => "test",
        Tone::Write => "write",
        Tone::Look => "look",
    }
}

fn per_mille(part: u64, whole: u64) -> u64 {
    part.min(whole).saturating_mul(1000) / whole.max(1)
}

/// A visit has the colour of what took longest in it.
fn tone_of_visit(visit: &TraceVisit) -> &'static str {
    let longest = visit.acts.iter().max_by_key(|act| act.took_ms());
    longest.map_or("look", tone)
}

fn row(out: &mut String, span: &TraceSpan, total: u64, (class, tone): (&str, &str)) {
    let begin = per_mille(span.begin_ms, total);
    let width = per_mille(span.took_ms(), total).min(1000 - begin.min(1000));
    let tens = |mille: u64| format!("{}.{}%", mille / 10, mille % 10);
    let feeling = match span.good {
        Some(true) => " yes",
        Some(false) => " no",
        None => "",
    };
    let cost = spend(&span.spent).map_or_else(String::new, |cost| {
        format!(" <span class=\"cost\">{}</span>", text(&cost))
    });
    let _ = write!(
        out,
        "<div class=\"row {class}\"><span class=\"name\">{}</span>\
         <span class=\"track\"><span class=\"bar {tone}\" style=\"--b:{};--w:{}\"></span></span>\
         <span class=\"took\">{}</span><span class=\"text{feeling}\">{}{cost}</span></div>",
        text(&span.name),
        tens(begin.min(997)),
        tens(width),
        spoken(span.took_ms()),
        text(&span.text),
    );
}

fn timeline(out: &mut String, trace: &Trace) {
    let total = trace.timeline.total_ms;
    out.push_str("<h2>Timeline</h2>\n<section class=\"card\">\n<div class=\"row axis\"><span>node</span><span class=\"ticks\">");
    for quarter in 0..=4 {
        let _ = write!(out, "<span>{}</span>", spoken(total * quarter / 4));
    }
    out.push_str("</span><span class=\"took\">took</span><span>what came of it</span></div>\n");
    for visit in &trace.timeline.visits {
        if visit.acts.is_empty() {
            out.push_str("<div class=\"visit leaf\">");
            row(out, &visit.span, total, ("leaf", "look"));
            out.push_str("</div>\n");
            continue;
        }
        let matters = visit.span.good == Some(false) || visit.span.took_ms() * 20 >= total;
        let open = if matters && visit.acts.len() <= 60 {
            " open"
        } else {
            ""
        };
        let _ = write!(out, "<details class=\"visit\"{open}><summary>");
        row(out, &visit.span, total, ("", tone_of_visit(visit)));
        out.push_str("</summary>\n");
        for act in &visit.acts {
            row(out, act, total, ("act", tone(act)));
            out.push('\n');
        }
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n<div class=\"legend\">");
    for (colour, name) in [
        ("--think", "model"),
        ("--test", "tests and commands"),
        ("--write", "writing"),
        ("--look", "looking"),
        ("--wait", "waiting"),
    ] {
        let _ = write!(out, "<span style=\"--c:var({colour})\">{name}</span>");
    }
    out.push_str("</div>\n");
}

/// Which tests changed, and which still fail.
fn tests(out: &mut String, trace: &Trace) {
    let Some(evidence) = &trace.known.state.evidence else {
        return;
    };
    // Where the nearest tests showed enough, they are all that was run.
    let first = evidence.first.as_ref().filter(|first| first.enough);
    let after = first.map_or(&evidence.after, |first| &first.with);
    let (Some(before), Some(after)) = (evidence.before.results(), after.results()) else {
        return;
    };
    let both = |a: &BTreeSet<String>, b: &BTreeSet<String>| -> Vec<String> {
        a.intersection(b).cloned().collect()
    };
    let lists = [
        (
            "Failed before, pass now",
            both(&before.failing, &after.passing),
        ),
        (
            "Passed before, fail now",
            both(&before.passing, &after.failing),
        ),
        (
            "Fail before and after",
            both(&before.failing, &after.failing),
        ),
        ("Flaky", after.flaky.iter().cloned().collect()),
    ];
    if lists.iter().all(|(_, tests)| tests.is_empty()) && evidence.accepted.is_empty() {
        return;
    }
    out.push_str("<h2>Evidence</h2>\n<section class=\"tests\">\n");
    for (name, tests) in lists.iter().filter(|(_, tests)| !tests.is_empty()) {
        let _ = write!(
            out,
            "<div class=\"card\"><h3>{name} ({})</h3><ul>",
            tests.len()
        );
        for test in tests.iter().take(MAX_TESTS) {
            let _ = write!(out, "<li class=\"mono\">{}</li>", text(test));
        }
        out.push_str("</ul></div>\n");
    }
    if !evidence.accepted.is_empty() {
        out.push_str("<div class=\"card\"><h3>Acceptance</h3><ul>");
        for accepted in &evidence.accepted {
            let word = if accepted.after { "succeeds" } else { "fails" };
            let _ = write!(
                out,
                "<li><code>{}</code> {word}</li>",
                text(&accepted.command)
            );
        }
        out.push_str("</ul></div>\n");
    }
    out.push_str("</section>\n");
}

fn change(out: &mut String, trace: &Trace) {
    let diff = &trace.report.diff;
    if diff.is_empty() {
        return;
    }
    out.push_str("<h2>The change</h2>\n<section class=\"card\">\n");
    let mut shown = 0;
    let mut open = false;
    for line in diff.lines() {
        shown += line.len() + 1;
        if shown > MAX_DIFF {
            break;
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            if open {
                out.push_str("</pre></details>\n");
            }
            let name = names.split_once(" b/").map_or(names, |(_, name)| name);
            let _ = write!(
                out,
                "<details class=\"file\" open><summary class=\"mono\">{}</summary><pre>",
                text(name)
            );
            open = true;
            continue;
        }
        if !open {
            out.push_str("<details class=\"file\" open><summary>patch</summary><pre>");
            open = true;
        }
        let class = match line.as_bytes() {
            [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "meta",
            [b'+', ..] => "add",
            [b'-', ..] => "del",
            [b'@', ..] => "hunk",
            [b' ', ..] => "same",
            _ => "meta",
        };
        let line = if line.is_empty() { " " } else { line };
        let _ = write!(out, "<span class=\"{class}\">{}</span>", text(line));
    }
    if open {
        out.push_str("</pre></details>\n");
    }
    out.push_str("</section>\n");
    if shown > MAX_DIFF {
        out.push_str("<p class=\"summary\">The rest is left out: lula diff shows all of it.</p>\n");
    }
}

fn record(out: &mut String, trace: &Trace) {
    let _ = write!(
        out,
        "<h2>Record</h2>\n<section class=\"card\"><details class=\"wide\"><summary><span \
         class=\"name\">All {} events</span></summary>\n<table>\n<tr><th>time</th><th>node</th>\
         <th>event</th><th>what</th></tr>\n",
        trace.moments.len()
    );
    for moment in trace.moments.iter().take(MAX_EVENTS) {
        let time = spoken(moment.at_ms.saturating_sub(trace.timeline.start_ms));
        let _ = writeln!(
            out,
            "<tr><td>{time}</td><td>{}</td><td>{}</td><td>{} {}</td></tr>",
            text(&moment.node),
            text(moment.event),
            text(&moment.name),
            text(&moment.text),
        );
    }
    out.push_str("</table></details></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_run_is_markup() {
        let hostile = "</title><script>alert(1)</script>\"'&\u{202e}\u{1b}[0m";
        let shown = text(hostile);
        for raw in ['<', '>', '"', '\'', '\u{202e}', '\u{1b}'] {
            assert!(!shown.contains(raw), "{shown}");
        }
        assert!(shown.starts_with("&lt;/title&gt;&lt;script&gt;"), "{shown}");
        assert_eq!(text("a\nb"), "a\nb");
    }

    #[test]
    fn the_page_asks_nothing_of_any_network() {
        for word in ["http:", "https:", "url(", "@import", "src="] {
            assert!(!STYLE.contains(word), "{word}");
        }
        assert!(POLICY.starts_with("default-src 'none'"));
    }
}
