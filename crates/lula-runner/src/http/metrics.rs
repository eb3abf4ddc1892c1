//! Counters, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

#[derive(Debug, Default)]
pub(super) struct RunnerMetrics(Mutex<MetricCounters>);

#[derive(Debug, Default)]
struct MetricCounters {
    requests: BTreeMap<(&'static str, u16), u64>,
    times: BTreeMap<&'static str, DurationHistogram>,
    tools: BTreeMap<(&'static str, &'static str), u64>,
}

#[derive(Debug, Default)]
struct DurationHistogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl RunnerMetrics {
    pub(super) fn request(&self, operation: &'static str, status: u16, took: Duration) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.requests.entry((operation, status)).or_default() += 1;
        let times = counted.times.entry(operation).or_default();
        let seconds = took.as_secs_f64();
        for (bucket, bound) in times.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        times.count += 1;
        times.seconds += seconds;
    }

    pub(super) fn tool(&self, tool: &'static str, outcome: &'static str) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counted.tools.entry((tool, outcome)).or_default() += 1;
    }

    pub(super) fn text(&self, gauges: &[(&str, &str, u64)]) -> String {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from(
            "# HELP lula_runner_requests_total Requests by operation and status.\n\
             # TYPE lula_runner_requests_total counter\n",
        );
        for ((operation, status), count) in &counted.requests {
            let _ = writeln!(
                text,
                "lula_runner_requests_total{{operation=\"{operation}\",status=\"{status}\"}} {count}"
            );
        }
        text.push_str(
            "# HELP lula_runner_request_seconds Time from request to answer.\n\
             # TYPE lula_runner_request_seconds histogram\n",
        );
        for (operation, times) in &counted.times {
            for (bound, count) in BUCKETS.iter().zip(times.buckets) {
                let _ = writeln!(
                    text,
                    "lula_runner_request_seconds_bucket{{operation=\"{operation}\",le=\"{bound}\"}} {count}"
                );
            }
            let (count, seconds) = (times.count, times.seconds);
            let _ = writeln!(
                text,
                "lula_runner_request_seconds_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {count}\n\
                 lula_runner_request_seconds_sum{{operation=\"{operation}\"}} {seconds}\n\
                 lula_runner_request_seconds_count{{operation=\"{operation}\"}} {count}"
            );
        }
        text.push_str(
            "# HELP lula_runner_calls_total Tool calls by tool and what came of them.\n\
             # TYPE lula_runner_calls_total counter\n",
        );
        for ((tool, outcome), count) in &counted.tools {
            let _ = writeln!(
                text,
                "lula_runner_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}"
            );
        }
        for (name, help, value) in gauges {
            let _ = writeln!(
                text,
                "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}"
            );
        }
        text
    }
}
