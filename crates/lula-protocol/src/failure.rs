//! How one process of Lula tells another why it ended: as a document, never as text to be parsed.

use serde::{Deserialize, Serialize};

use crate::{Code, RunExit};

/// What `lula --json` prints on standard output when a command fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDocument {
    pub error: FailureReport,
}

/// Why a command failed, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureReport {
    /// The stable code, which `lula explain` explains.
    pub code: Code,
    /// What happened, to what.
    pub message: String,
    /// Where the mistake is: `file:line`, a variable or a flag.
    #[serde(default)]
    pub place: Option<String>,
    /// What to do about it.
    #[serde(default)]
    pub remedy: Option<String>,
    /// How the command ended; its number is the exit status of the process.
    #[serde(default = "failed")]
    pub exit: RunExit,
}

const fn failed() -> RunExit {
    RunExit::Failed
}

impl FailureReport {
    /// The failure in what a process wrote to standard output with `--json`. Documents before it, such
    /// as the one a runner writes once it listens, are skipped.
    pub fn find(output: &[u8]) -> Option<Self> {
        serde_json::Deserializer::from_slice(output)
            .into_iter::<serde_json::Value>()
            .map_while(Result::ok)
            .filter_map(|value| serde_json::from_value::<FailureDocument>(value).ok())
            .last()
            .map(|document| document.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> FailureReport {
        FailureReport {
            code: Code::EnvironmentUnfit,
            message: "no tier works here:\n  namespace: it is off\nerror[L0001]: not this".into(),
            place: None,
            remedy: Some("switch it on\nor ask an administrator".into()),
            exit: RunExit::Environment,
        }
    }

    #[test]
    fn what_one_process_writes_another_reads() {
        let document = FailureDocument { error: report() };
        let mut output = b"{\"listening\": \"unix:/x\"}\n".to_vec();
        output.extend(serde_json::to_vec_pretty(&document).unwrap());
        assert_eq!(FailureReport::find(&output), Some(report()));
    }

    #[test]
    fn other_output_is_no_failure() {
        let cut = &serde_json::to_vec(&FailureDocument { error: report() }).unwrap()[..40];
        for output in [
            &b""[..],
            b"error[L0201]: text",
            b"{\"listening\": 1}",
            b"{\"error\": {\"code\": \"L9999\", \"message\": \"\"}}",
            cut,
        ] {
            assert_eq!(FailureReport::find(output), None);
        }
    }
}
