//! How the tiers stand somewhere, by what `lula doctor` says and by what attacks on them come to.

use anyhow::{Context, Result};
use serde_json::Value;

/// The tiers that are a boundary.
pub(crate) const TIERS: [&str; 2] = ["namespace", "landlock"];

/// What was found in one place.
pub(crate) struct Standing {
    /// For each of [`TIERS`].
    pub(crate) tiers: Vec<TierStanding>,
    /// The setting that would give more.
    pub(crate) remedy: Option<String>,
}

/// How a tier stands there.
pub(crate) enum TierStanding {
    /// Why it cannot be had.
    Refused(String),
    /// It works, and was not attacked.
    Works { is_floor: bool },
    Attacked {
        /// How many attacks were made, and how many of them held off.
        held: usize,
        all: usize,
        /// How many limits are not in force.
        unlimited: usize,
        /// How many attacks come to the same end outside, and prove nothing.
        untried: usize,
        is_floor: bool,
    },
}

impl Standing {
    /// Asks `lula`, which answers with the document that it prints with these arguments. What of an attack
    /// was not held off is said aloud.
    pub(crate) fn found(
        mut lula: impl FnMut(&[&str]) -> Result<Value>,
        attacked: bool,
        aloud: bool,
    ) -> Result<Self> {
        let report = lula(&["doctor", "--json"])?;
        let mut remedy = None;
        let mut tiers = Vec::new();
        for name in TIERS {
            let found = report["tiers"].as_array().into_iter().flatten();
            let found = found
                .clone()
                .find(|tier| tier["name"] == name)
                .context("the report has no such tier")?;
            if let Some(said) = found["remedy"].as_str() {
                remedy.get_or_insert_with(|| said.to_owned());
            }
            if found["available"] != true {
                let reason = found["reason"].as_str().unwrap_or_default();
                tiers.push(TierStanding::Refused(reason.to_owned()));
                continue;
            }
            let is_floor = found["is_floor"] == true;
            if !attacked {
                tiers.push(TierStanding::Works { is_floor });
                continue;
            }
            let report = lula(&["doctor", "--attack", "--tier", name, "--json"])?;
            let probes = report["probes"]
                .as_array()
                .with_context(|| format!("no probes: {report}"))?;
            if aloud {
                say_what_did_not_hold(name, probes);
            }
            tiers.push(TierStanding::of(probes, is_floor));
        }
        Ok(Self { tiers, remedy })
    }

    /// Whether some tier works and every attack on every one that works was held off, or the refusal names
    /// what to do.
    pub(crate) fn is_kept(&self) -> bool {
        let held = self.tiers.iter().all(|tier| match tier {
            TierStanding::Refused(_) | TierStanding::Works { .. } => true,
            TierStanding::Attacked { held, all, .. } => held == all && *held > 0,
        });
        held && (self.tiers.iter().any(TierStanding::works) || self.remedy.is_some())
    }
}

fn say_what_did_not_hold(tier: &str, probes: &[Value]) {
    for probe in probes.iter().filter(|probe| probe["outcome"] != "held") {
        println!(
            "    {tier} {} {}: expected {}, saw {}",
            probe["outcome"], probe["name"], probe["expected"], probe["observed"]
        );
    }
}

impl TierStanding {
    fn of(probes: &[Value], is_floor: bool) -> Self {
        let count = |outcome: &str| {
            let probes = probes.iter();
            probes.filter(|probe| probe["outcome"] == outcome).count()
        };
        let (unlimited, untried) = (count("unlimited"), count("untried"));
        Self::Attacked {
            held: count("held"),
            all: probes.len() - unlimited - untried,
            unlimited,
            untried,
            is_floor,
        }
    }

    pub(crate) const fn works(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl std::fmt::Display for TierStanding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(reason) => write!(f, "refused: {reason}"),
            Self::Works { is_floor } => f.write_str(if *is_floor {
                "works"
            } else {
                "works; with less"
            }),
            Self::Attacked {
                held,
                all,
                unlimited,
                untried,
                is_floor,
            } => {
                write!(f, "{held} of {all}")?;
                if *unlimited > 0 {
                    write!(f, ", {unlimited} not limited")?;
                }
                if *untried > 0 {
                    write!(f, ", {untried} not tried")?;
                }
                if !is_floor {
                    f.write_str("; with less")?;
                }
                Ok(())
            }
        }
    }
}

/// The page with another table between two lines.
pub(crate) fn put(page: &str, begin: &str, end: &str, table: &str) -> Result<String> {
    let (before, rest) = page
        .split_once(begin)
        .context("the page has no place for the table")?;
    let (_, after) = rest.split_once(end).context("the table has no end")?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// A cell of a table in Markdown.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attacked(outcomes: &[&str]) -> TierStanding {
        let probes = outcomes.iter().map(|outcome| json!({"outcome": outcome}));
        TierStanding::of(&probes.collect::<Vec<_>>(), true)
    }

    fn standing(tiers: Vec<TierStanding>, remedy: Option<&str>) -> Standing {
        Standing {
            tiers,
            remedy: remedy.map(str::to_owned),
        }
    }

    #[test]
    fn it_is_kept_where_all_that_works_holds_or_the_knob_is_named() {
        let refused = || TierStanding::Refused("no".to_owned());
        let held = attacked(&["held", "unlimited", "untried"]);
        assert_eq!(held.to_string(), "1 of 1, 1 not limited, 1 not tried");
        assert!(standing(vec![refused(), held], None).is_kept());
        let broken = attacked(&["held", "broken"]);
        assert!(!standing(vec![refused(), broken], Some("x")).is_kept());
        let unknown = attacked(&["held", "error"]);
        assert!(!standing(vec![refused(), unknown], Some("x")).is_kept());
        let nothing = attacked(&["untried", "untried"]);
        assert!(!standing(vec![refused(), nothing], Some("x")).is_kept());
        assert!(standing(vec![refused(), refused()], Some("a line to copy")).is_kept());
        assert!(!standing(vec![refused(), refused()], None).is_kept());
    }

    #[test]
    fn only_the_table_of_the_page_changes() {
        let now = put("before\nBold\nEafter\n", "B", "E", "new\n").unwrap();
        assert_eq!(now, "before\nBnew\nEafter\n");
        assert!(put("nothing", "B", "E", "new\n").is_err());
    }
}
