//! Hands, agents and a planner that do what was drawn, and nothing by themselves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use lula_agents::crew::{News, Returned};
use lula_agents::deeds::Taken;
use lula_agents::hands::{
    Consignment, Delivered, Effect, Harvest, Joined, Joining, Kept, Line, Listing, OverLine, Place,
    Said, Trial, TrialResult, workspace_of,
};
use lula_agents::minds::MindError;
use lula_agents::team::Wish;
use lula_agents::{Crew, Hands, HandsError, Minds, Task, Watch};
use lula_models::normal::{ModelRequest, ModelResponse, Part, Stop};
use lula_protocol::{Amounts, Digest, EffectId, Exit, RunId, ToolCall, WorkspaceId};
use lula_repair::trial::{Accepted, Baseline, Evidence, Looked, Results};

use super::bench::Bench;
use super::drawn::{Drawn, Fate, How, Rewiring};

pub(super) struct State {
    pub(super) bench: Bench,
    first: Option<serde_json::Value>,
    fates: VecDeque<Fate>,
    amends: VecDeque<Rewiring>,
    /// What each agent at work was handed.
    at_work: BTreeMap<RunId, Task>,
    /// Wishes, and what each agent was told.
    pub(super) wishes: BTreeMap<EffectId, Option<Said>>,
}

pub(super) struct Luck(Mutex<State>);

fn results() -> Results {
    Results {
        passing: ["every word stands once".to_owned()].into(),
        ..Results::default()
    }
}

fn baseline() -> Baseline {
    Baseline {
        looked: Looked::Ran(results()),
        ..Baseline::default()
    }
}

fn no<T>() -> Result<T, HandsError> {
    Err(HandsError::Failed("nobody does that here".to_owned()))
}

impl Luck {
    pub(super) fn new(drawn: &Drawn) -> Self {
        Self(Mutex::new(State {
            bench: Bench::new(),
            first: Some(drawn.spoken()),
            fates: drawn.fates.clone().into(),
            amends: drawn.amends.clone().into(),
            at_work: BTreeMap::new(),
            wishes: BTreeMap::new(),
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    /// What comes of one of these agents next.
    fn news(&mut self, agents: &[RunId]) -> News {
        let (who, edits, mends, how) = match self.fates.pop_front() {
            Some(Fate::Wish { who, rewiring }) => {
                let run = agents[who % agents.len()].clone();
                let handoff = self.at_work[&run].handoff.as_ref().unwrap();
                let number = u64::try_from(self.wishes.len()).unwrap();
                let wish = Wish {
                    id: EffectId::from_parts(number, [3; 10]),
                    job: handoff.job.clone(),
                    arguments: rewiring.proposed(handoff.authority.scope.patterns()),
                    run,
                };
                self.wishes.insert(wish.id.clone(), None);
                return News::Wish { wish };
            }
            Some(Fate::Back {
                who,
                edits,
                mends,
                how,
            }) => (who, edits, mends, how),
            // Whoever is left does a little and is done.
            None => (0, vec![(0, super::drawn::Edit::Insert(0))], true, How::Done),
        };
        let run = agents[who % agents.len()].clone();
        self.at_work.remove(&run).unwrap();
        let made = self
            .bench
            .work(&workspace_of(&run), &edits, mends, how == How::Strays);
        let done = how != How::GivesUp && made.bearable && !made.taken.files.is_empty();
        News::Back(Box::new(Returned {
            run,
            exit: if done { Exit::Verified } else { Exit::Failed },
            summary: "as luck has it".to_owned(),
            by: "luck".to_owned(),
            said: String::new(),
            files: made.taken.files.iter().map(|f| f.path.clone()).collect(),
            diff: made.taken.diff.clone(),
            lines: 1,
            tree: done.then_some(made.taken.digest),
            answer: None,
            confidence: None,
            spent: Amounts::none(),
        }))
    }
}

#[async_trait]
impl Crew for Luck {
    async fn begin(&self, agent: &RunId, task: &Task, _: &Amounts) -> Result<(), HandsError> {
        let handoff = task.handoff.as_ref().unwrap();
        handoff.check().unwrap();
        let mut state = self.state();
        state.bench.settle(&workspace_of(agent), handoff);
        let before = state.at_work.insert(agent.clone(), task.clone());
        assert!(before.is_none(), "{agent} was begun twice");
        Ok(())
    }

    async fn wait(&self, agents: &[RunId]) -> Result<News, HandsError> {
        assert!(!agents.is_empty(), "nobody is waited for: a deadlock");
        Ok(self.state().news(agents))
    }

    async fn stop(&self, _: &[RunId]) {}

    async fn dismiss(&self, _: &[RunId]) -> Result<Vec<Returned>, HandsError> {
        no()
    }

    async fn propose(&self, _: &Wish) -> Result<Said, HandsError> {
        no()
    }

    async fn answer(&self, wish: &EffectId, said: &Said) -> Result<(), HandsError> {
        let before = self.state().wishes.insert(wish.clone(), Some(said.clone()));
        assert_eq!(before, Some(None), "one answer to one wish");
        Ok(())
    }
}

#[async_trait]
impl Minds for Luck {
    async fn ask(
        &self,
        _: &str,
        _: &ModelRequest,
        _: &Amounts,
    ) -> Result<(ModelResponse, Amounts), MindError> {
        let mut state = self.state();
        let said = state.first.take();
        let amended = || Some(state.amends.pop_front()?.spoken());
        let nothing = || serde_json::json!({"replaces": "", "tasks": []});
        let text = said.or_else(amended).unwrap_or_else(nothing).to_string();
        let response = ModelResponse {
            raw: Digest::of_bytes(text.as_bytes()),
            parts: vec![Part::Text { text }],
            stop: Stop::End,
            usage: None,
        };
        Ok((response, Amounts::none()))
    }
}

#[async_trait]
impl Hands for Luck {
    async fn open(&self, run: &RunId, _: &str) -> Result<Place, HandsError> {
        let workspace = workspace_of(run);
        let commit = self.state().bench.open(&workspace);
        Ok(Place {
            workspace,
            commit,
            uncommitted: 0,
            history: Vec::new(),
            ignored: None,
        })
    }

    async fn adopt(&self, _: &RunId, _: &WorkspaceId) -> Result<(), HandsError> {
        no()
    }

    async fn files(&self, _: &Effect, _: &WorkspaceId) -> Result<Listing, HandsError> {
        Ok(Listing::default())
    }

    async fn fetch(
        &self,
        _: &Effect,
        _: &WorkspaceId,
        paths: &[String],
    ) -> Result<Vec<Option<String>>, HandsError> {
        Ok(vec![None; paths.len()])
    }

    async fn call(&self, _: &ToolCall) -> Result<Said, HandsError> {
        no()
    }

    async fn stop(&self, _: &Effect) {}

    async fn reset(&self, _: &Effect, _: &WorkspaceId) -> Result<(), HandsError> {
        no()
    }

    async fn change(&self, workspace: &WorkspaceId) -> Result<Taken, HandsError> {
        let taken = self.state().bench.take(workspace);
        Ok(Taken {
            files: taken.files.iter().map(|file| file.path.clone()).collect(),
            diff: taken.diff,
            tree: taken.digest,
        })
    }

    async fn trial(
        &self,
        workspace: &WorkspaceId,
        trial: &Trial,
        _: &Watch,
    ) -> Result<TrialResult, HandsError> {
        if matches!(trial, Trial::Examine { .. }) {
            let baseline = baseline();
            return Ok(TrialResult::Examined {
                baseline: Box::new(baseline),
            });
        }
        let accepted = Accepted {
            command: "look".to_owned(),
            before: false,
            after: true,
            timed_out: false,
            output: String::new(),
        };
        let evidence = Box::new(Evidence {
            before: Looked::Ran(results()),
            after: Looked::Ran(results()),
            accepted: vec![accepted],
            changed_files: self.state().bench.take(workspace).files.len(),
            ..Evidence::default()
        });
        Ok(TrialResult::Weighed { evidence })
    }

    async fn open_over(&self, _: &OverLine) -> Result<Place, HandsError> {
        no()
    }

    async fn harvest(&self, _: &Effect, order: &Harvest) -> Result<Kept, HandsError> {
        let bench = &mut self.state().bench;
        let line = bench.line(&order.line.run);
        let job = order.job.as_str();
        match bench.keep(&line, job, &order.workspace, &order.message) {
            Ok((commit, outside)) => Ok(Kept { commit, outside }),
            Err(why) => Err(HandsError::Failed(why)),
        }
    }

    async fn join(&self, _: &Effect, order: &Joining) -> Result<Joined, HandsError> {
        let bench = &mut self.state().bench;
        let line = bench.line(&order.line.run);
        let came = bench.join(&line, order.job.as_str(), &order.commit, &order.message);
        Ok(match came {
            Ok(commit) => Joined::Integrated {
                commit,
                tests: Some(Box::new(results())),
            },
            Err((said, files)) => Joined::Misfit {
                textual: !files.is_empty(),
                said,
                files,
            },
        })
    }

    async fn lay(
        &self,
        _: &Effect,
        line: &Line,
        workspace: &WorkspaceId,
    ) -> Result<(), HandsError> {
        let bench = &mut self.state().bench;
        let line = bench.line(&line.run);
        bench.lay(&line, workspace);
        Ok(())
    }

    async fn deliver(&self, _: &Effect, _: &Consignment) -> Result<Delivered, HandsError> {
        no()
    }

    async fn deliver_all(
        &self,
        _: &Effect,
        _: &[Consignment],
    ) -> Result<Vec<Delivered>, HandsError> {
        no()
    }
}
