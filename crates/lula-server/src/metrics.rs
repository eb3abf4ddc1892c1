//! What the server counts, in the text format of Prometheus. Labels are names of the table of routes and
//! words of our own: never a path, a principal or anything else that a request brings.

use std::sync::Arc;
use std::time::Duration;

use lula_host::report::RunReport;
use lula_host::runs::reader;
use lula_protocol::{RunExit, RunId};
use lula_store::RunStore;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

type Labels<const N: usize> = [(&'static str, String); N];

/// How long requests take, in seconds.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The counters of one server.
#[derive(Debug)]
pub(crate) struct ServerMetrics {
    registry: Registry,
    requests: Family<Vec<(String, String)>, Counter>,
    durations: Histogram,
    pub(crate) runs_begun: Counter,
    runs_ended: Family<Vec<(String, String)>, Counter>,
    spent: Family<Vec<(String, String)>, Counter>,
    pub(crate) drivers_started: Counter,
    pub(crate) drivers_failed: Counter,
    pub(crate) events_sent: Counter,
    pub(crate) streams_lagged: Counter,
    answers: Family<Vec<(String, String)>, Counter>,
    drivers: Gauge,
    queued: Gauge,
    streams: Gauge,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("lula_server");
        let requests = Family::<Vec<(String, String)>, Counter>::default();
        registry.register("requests", "Requests that were answered", requests.clone());
        let durations = Histogram::new(BUCKETS);
        registry.register_with_unit(
            "request_duration",
            "How long requests took to answer, streams aside",
            Unit::Seconds,
            durations.clone(),
        );
        let mut counter = |name: &str, help: &str| {
            let counter = Counter::default();
            registry.register(name, help, counter.clone());
            counter
        };
        let runs_begun = counter("runs_begun", "Runs that were begun here");
        let drivers_started = counter("drivers_started", "Drivers that were started");
        let drivers_failed = counter(
            "drivers_failed",
            "Drivers that ended before their run rested",
        );
        let events_sent = counter("events_sent", "Events that were sent to streams");
        let streams_lagged = counter(
            "streams_lagged",
            "Streams that were ended because their reader fell behind",
        );
        let mut family = |name: &str, help: &str| {
            let family = Family::<Vec<(String, String)>, Counter>::default();
            registry.register(name, help, family.clone());
            family
        };
        let runs_ended = family("runs_ended", "Runs that ended while they were driven here");
        let spent = family("spent", "What those runs spent, by dimension");
        let answers = family("approvals_answered", "Answers to what runs asked");
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let drivers = gauge("drivers", "Runs that are driven now");
        let queued = gauge("runs_queued", "Runs that wait for a driver");
        let streams = gauge("streams", "Event streams that are open now");
        Self {
            registry,
            requests,
            durations,
            runs_begun,
            runs_ended,
            spent,
            drivers_started,
            drivers_failed,
            events_sent,
            streams_lagged,
            answers,
            drivers,
            queued,
            streams,
        }
    }
}

fn labels<const N: usize>(pairs: Labels<N>) -> Vec<(String, String)> {
    let owned = |(name, value): (&'static str, String)| (name.to_owned(), value);
    pairs.into_iter().map(owned).collect()
}

impl ServerMetrics {
    /// A request to a route was answered.
    pub(crate) fn answered(&self, route: &'static str, status: u16, took: Duration) {
        let of = labels([("route", route.to_owned()), ("status", status.to_string())]);
        self.requests.get_or_create(&of).inc();
        self.durations.observe(took.as_secs_f64());
    }

    pub(crate) fn approval_answered(&self, decision: &'static str) {
        let of = labels([("decision", decision.to_owned())]);
        self.answers.get_or_create(&of).inc();
    }

    /// A run that was driven here is over.
    pub(crate) async fn run_ended(&self, run: &RunId, store: &Arc<dyn RunStore>) {
        let Ok(reader) = reader(Arc::clone(store)) else {
            return;
        };
        if let Ok(known) = reader.show(run, None).await {
            self.ended(&RunReport::of(&known));
        }
    }

    /// What is said of a run that is over.
    fn ended(&self, report: &RunReport) {
        let of = labels([("exit", exit(report.exit).to_owned())]);
        self.runs_ended.get_or_create(&of).inc();
        for (dimension, amount) in report.spent.iter() {
            let of = labels([("dimension", dimension.name().to_owned())]);
            self.spent.get_or_create(&of).inc_by(amount);
        }
    }

    /// The text that is scraped, with what is so at this moment.
    pub(crate) fn text(&self, (driven, queued): (usize, usize), streams: usize) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.drivers.set(number(driven));
        self.queued.set(number(queued));
        self.streams.set(number(streams));
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

const fn exit(exit: RunExit) -> &'static str {
    match exit {
        RunExit::Verified => "verified",
        RunExit::Failed => "failed",
        RunExit::Usage => "usage",
        RunExit::WaitingForApproval => "waiting_for_approval",
        RunExit::Budget => "budget",
        RunExit::Inconclusive => "inconclusive",
        RunExit::Environment => "environment",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_is_counted() {
        let metrics = ServerMetrics::default();
        metrics.answered("list_runs", 200, Duration::from_millis(3));
        let text = metrics.text((2, 3), 4);
        for line in [
            "lula_server_requests_total{route=\"list_runs\",status=\"200\"} 1",
            "lula_server_request_duration_seconds_count 1",
            "lula_server_drivers 2",
            "lula_server_runs_queued 3",
            "lula_server_streams 4",
            "# EOF",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    /// Everything of ours that a text of queries names.
    fn queried(text: &str) -> std::collections::BTreeSet<&str> {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !letters(c));
        words.filter(|word| word.starts_with("lula_")).collect()
    }

    #[test]
    fn the_dashboard_and_the_alerts_name_what_is_there() {
        let metrics = ServerMetrics::default();
        metrics.answered("list_runs", 200, Duration::from_millis(3));
        metrics.approval_answered("approve");
        let exit = labels([("exit", exit(RunExit::Environment).to_owned())]);
        metrics.runs_ended.get_or_create(&exit).inc();
        let spent = labels([("dimension", "micro_usd".to_owned())]);
        metrics.spent.get_or_create(&spent).inc();
        let text = metrics.text((0, 0), 0);
        let there: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split([' ', '{']).next())
            .collect();
        let files = [
            include_str!("../../../deploy/prometheus/lula.rules.yml"),
            include_str!("../../../deploy/grafana/lula.json"),
        ];
        for file in files {
            let queried = queried(file);
            assert!(queried.len() > 5, "{queried:?}");
            for name in queried {
                assert!(there.contains(&name), "{name} is not in\n{text}");
            }
        }
        // And everything that is counted is on the dashboard.
        let shown = queried(files[1]);
        for name in there.iter().filter(|name| name.starts_with("lula_")) {
            let base = name.trim_end_matches("_sum").trim_end_matches("_count");
            let is_shown = shown.contains(name) || shown.contains(&*format!("{base}_bucket"));
            assert!(is_shown, "{name} is on no panel");
        }
    }
}
