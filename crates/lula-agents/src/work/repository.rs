//! What a run knows of each of its repositories, in the order of its task, and what happens there.

use lula_runner_api::{CommittedChangeView, DeliveredView};
use serde::{Deserialize, Serialize};

use crate::runner_port::AgentWorkspace;
use crate::work::TestBaseline;

/// One repository of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryState {
    /// Where it is worked on, once it is open.
    pub place: Option<AgentWorkspace>,
    /// What its tests said before anything was done.
    pub baseline: Option<TestBaseline>,
    /// The change as it was taken; for the first repository it is the run's proposal.
    pub taken: Option<CommittedChangeView>,
    /// Where the change is.
    pub delivered: Option<DeliveredView>,
}

/// What happens in the repositories of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LoggedRepositoryEvent", into = "LoggedRepositoryEvent")]
pub enum RepositoryEvent {
    /// The workspaces of these are open, from the one of this number on.
    Opened {
        /// The number of the first of them.
        first: usize,
        places: Vec<RepositoryPlace>,
    },
    /// The tests were run before anything was done.
    Tested {
        repo: usize,
        baseline: Box<TestBaseline>,
    },
    /// The change is this.
    Taken {
        repo: usize,
        /// What the change is.
        taken: CommittedChangeView,
    },
    /// The change is where it was to go.
    Delivered {
        repo: usize,
        delivered: DeliveredView,
    },
}

/// Where a repository is worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryPlace {
    /// The repository, as an absolute path; empty for the first, whose events do not name it.
    pub repository: String,
    pub place: AgentWorkspace,
}

/// The same as logs spell it, which have names of their own for all but the first repository.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
enum LoggedRepositoryEvent {
    Opened {
        place: AgentWorkspace,
    },
    OpenedToo {
        sites: Vec<LoggedPlace>,
    },
    Examined {
        baseline: Box<TestBaseline>,
    },
    ExaminedToo {
        site: usize,
        baseline: Box<TestBaseline>,
    },
    TakenToo {
        site: usize,
        taken: CommittedChangeView,
    },
    Delivered {
        delivered: DeliveredView,
    },
    DeliveredToo {
        site: usize,
        delivered: DeliveredView,
    },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoggedPlace {
    repository: String,
    place: AgentWorkspace,
    // Written as nothing, always: what came later has events of its own.
    baseline: (),
    taken: (),
    delivered: (),
}

impl From<RepositoryEvent> for LoggedRepositoryEvent {
    fn from(event: RepositoryEvent) -> Self {
        match event {
            RepositoryEvent::Opened { first, mut places } => {
                if first == 0 && places.len() == 1 {
                    let place = places.remove(0).place;
                    return Self::Opened { place };
                }
                let sites = places.into_iter().map(|one| LoggedPlace {
                    repository: one.repository,
                    place: one.place,
                    baseline: (),
                    taken: (),
                    delivered: (),
                });
                Self::OpenedToo {
                    sites: sites.collect(),
                }
            }
            RepositoryEvent::Tested { repo: 0, baseline } => Self::Examined { baseline },
            RepositoryEvent::Tested { repo, baseline } => Self::ExaminedToo {
                site: repo,
                baseline,
            },
            RepositoryEvent::Taken { repo, taken } => Self::TakenToo { site: repo, taken },
            RepositoryEvent::Delivered { repo: 0, delivered } => Self::Delivered { delivered },
            RepositoryEvent::Delivered { repo, delivered } => Self::DeliveredToo {
                site: repo,
                delivered,
            },
        }
    }
}

impl From<LoggedRepositoryEvent> for RepositoryEvent {
    fn from(logged: LoggedRepositoryEvent) -> Self {
        match logged {
            LoggedRepositoryEvent::Opened { place } => Self::opened(place),
            LoggedRepositoryEvent::OpenedToo { sites } => {
                let places = sites.into_iter().map(|site| RepositoryPlace {
                    repository: site.repository,
                    place: site.place,
                });
                Self::Opened {
                    first: 1,
                    places: places.collect(),
                }
            }
            LoggedRepositoryEvent::Examined { baseline } => Self::Tested { repo: 0, baseline },
            LoggedRepositoryEvent::ExaminedToo { site, baseline } => Self::Tested {
                repo: site,
                baseline,
            },
            LoggedRepositoryEvent::TakenToo { site, taken } => Self::Taken { repo: site, taken },
            LoggedRepositoryEvent::Delivered { delivered } => {
                Self::Delivered { repo: 0, delivered }
            }
            LoggedRepositoryEvent::DeliveredToo { site, delivered } => Self::Delivered {
                repo: site,
                delivered,
            },
        }
    }
}

impl RepositoryEvent {
    /// The workspace of the first repository is open.
    pub fn opened(place: AgentWorkspace) -> Self {
        let repository = String::new();
        Self::Opened {
            first: 0,
            places: vec![RepositoryPlace { repository, place }],
        }
    }

    /// Changes what is known of the repositories.
    pub(super) fn apply(&self, repositories: &mut [RepositoryState]) {
        let mut change = |repo: usize, change: &dyn Fn(&mut RepositoryState)| {
            if let Some(repository) = repositories.get_mut(repo) {
                change(repository);
            }
        };
        match self {
            Self::Opened { first, places } => {
                for (index, one) in places.iter().enumerate() {
                    change(first + index, &|it| it.place = Some(one.place.clone()));
                }
            }
            Self::Tested { repo, baseline } => {
                change(*repo, &|it| it.baseline = Some(baseline.as_ref().clone()));
            }
            Self::Taken { repo, taken } => change(*repo, &|it| it.taken = Some(taken.clone())),
            Self::Delivered { repo, delivered } => {
                change(*repo, &|it| it.delivered = Some(delivered.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::work::RunStateEvent;

    #[test]
    fn events_of_repositories_are_kept_as_logs_spell_them() {
        let workspace = "ws_00000000000000000000000000";
        let place = json!({"workspace": workspace, "commit": "abc", "uncommitted": 0,
            "history": []});
        let site = json!({"repository": "/there", "place": place, "baseline": null,
            "taken": null, "delivered": null});
        let baseline = json!({"looked": "no_tests", "command": null, "messages": [],
            "unfixable": []});
        let taken = json!({"diff": "", "files": ["a.py"],
            "tree": lula_protocol::Digest::of_bytes(b"tree")});
        let delivered = json!({"branch": "lula/x", "commit": "abc", "directory": null});
        for logged in [
            json!({"event": "opened", "place": place}),
            json!({"event": "opened_too", "sites": [site]}),
            json!({"event": "examined", "baseline": baseline}),
            json!({"event": "examined_too", "site": 1, "baseline": baseline}),
            json!({"event": "taken_too", "site": 1, "taken": taken}),
            json!({"event": "delivered", "delivered": delivered}),
            json!({"event": "delivered_too", "site": 2, "delivered": delivered}),
            // Others of the same log.
            json!({"event": "considered", "job": "parser"}),
            json!({"event": "job", "change": {"step": "integrated", "id": "parser",
                "commit": null}}),
            json!({"event": "retrying", "retry": {"target": "coder", "another_mind": true}}),
            json!({"event": "told"}),
        ] {
            let event: RunStateEvent = serde_json::from_value(logged.clone()).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), logged);
        }
    }
}
