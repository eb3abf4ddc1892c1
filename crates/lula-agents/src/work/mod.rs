//! The state of a run: what its events add up to. `apply` is pure and total.

mod conversation;
mod event;
mod parts;
mod repository;

use lula_protocol::RunId;
use lula_runner_api::DeliveredView;
use serde::{Deserialize, Serialize};

use crate::chat::{ChatEvent, ChatState};
use crate::guidelines::{ChangeConfidence, StepRating};
use crate::intent::{is_meant, of_old_log};
use crate::lessons::LessonSelection;
use crate::model_choice::{ModelShareOfRun, credit};
use crate::plan::StepId;
use crate::recovery::{AttemptFailure, RetryTarget};
use crate::route::TaskLane;
use crate::runner_port::AgentWorkspace;
use crate::task::{RunTask, TaskIntent};
use crate::team::{CandidateContest, MissingTask, SharedPlan, WholeReview, agent_run};
use crate::verdict::{GoalTests, RunVerdict, VerificationEvidence};
use crate::world::DriverFenceReport;

pub use conversation::OpenConversation;
pub use event::RunStateEvent;
pub use lula_repair::trial::TestBaseline;
pub use parts::{
    CoderBrief, CoderProposal, EarlyEnd, ForeseenQuestion, ResearchAnswer, RetryPlan,
    UndecidedChange,
};
pub use repository::{RepositoryEvent, RepositoryPlace, RepositoryState};

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodingState {
    /// What is asked for.
    pub task: RunTask,
    /// How it is worked on.
    pub lane: TaskLane,
    /// What people said meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its repositories, as the task lists them.
    pub repositories: Vec<RepositoryState>,
    /// How far the driver is kept away from there.
    pub fenced: Option<DriverFenceReport>,
    /// The plan, where one was made.
    pub plan: Vec<String>,
    /// The context that a coder is given, once it is collected.
    pub brief: Option<CoderBrief>,
    /// Who was done last, and what they say of it.
    pub made: Option<(String, String)>,
    /// Every model that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ModelShareOfRun>,
    /// The conversation with the coder that handed the change in, while another attempt may go on in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Box<OpenConversation>>,
    /// The change, as it is.
    pub proposal: Option<CoderProposal>,
    /// Every failed attempt, the oldest first.
    pub failures: Vec<AttemptFailure>,
    /// The try under way, where it is not the first.
    pub retry: Option<RetryPlan>,
    /// How many more tries were made.
    pub loops: u32,
    /// What the verdict rests on.
    pub evidence: Option<VerificationEvidence>,
    /// The verdict; none before the change was judged.
    pub verdict: Option<RunVerdict>,
    /// The last change that nothing was shown of, and what was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Box<UndecidedChange>>,
    /// The lessons that were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<LessonSelection>,
    /// The ratings of every step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratings: Vec<StepRating>,
    /// How sure to be of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<ChangeConfidence>,
    /// Why the run ended without one.
    pub end: Option<EarlyEnd>,
    /// What was found out, where nothing was to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<ResearchAnswer>,
    /// How far several agents are together, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<Box<SharedPlan>>,
    /// How far those are who try the same, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contest: Option<Box<CandidateContest>>,
    /// What a model doubts that compared the whole with the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<WholeReview>,
    /// How far a chat is, where the run is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<Box<ChatState>>,
}

impl CodingState {
    /// A task before its first node.
    pub fn begin(task: RunTask) -> Self {
        let handed = task.handoff.as_ref();
        let baseline = handed.and_then(|handoff| handoff.baseline.as_deref().cloned());
        let mut repositories = vec![RepositoryState::default(); task.repositories.len()];
        if let Some(first) = repositories.first_mut() {
            first.baseline = baseline;
        }
        let chat = task
            .chat
            .map(|terms| Box::new(ChatState::begin(terms.silent)));
        Self {
            task,
            chat,
            lane: TaskLane::Interactive,
            notes: Vec::new(),
            repositories,
            fenced: None,
            plan: Vec::new(),
            brief: None,
            made: None,
            parts: Vec::new(),
            conversation: None,
            proposal: None,
            failures: Vec::new(),
            retry: None,
            loops: 0,
            evidence: None,
            verdict: None,
            undecided: None,
            recalled: None,
            ratings: Vec::new(),
            confidence: None,
            end: None,
            answer: None,
            joint: None,
            contest: None,
            review: None,
        }
    }

    /// Every agent that was begun for this run: what it worked on, and its run.
    pub fn agents(&self, run: &RunId) -> Vec<(StepId, RunId)> {
        let mut agents = Vec::new();
        let steps = self.joint.iter().flat_map(|joint| &joint.dag.steps);
        for (id, entry) in steps {
            let attempts = 0..entry.attempts;
            agents.extend(attempts.map(|attempt| (id.clone(), agent_run(run, id, attempt))));
        }
        let rivals = self.contest.iter().flat_map(|contest| &contest.rivals);
        agents.extend(rivals.map(|rival| (rival.id.clone(), rival.run.clone())));
        agents
    }

    /// The runs of those of them that work.
    pub fn agents_at_work(&self) -> Vec<RunId> {
        let running = self.agents_by_task().into_iter();
        running.map(|(_, run)| run).collect()
    }

    /// The agents that work, by what they work on.
    pub fn agents_by_task(&self) -> Vec<(StepId, RunId)> {
        let steps = self.joint.iter().flat_map(|joint| joint.dag.running());
        let mut running: Vec<(StepId, RunId)> =
            steps.map(|(id, run)| (id.clone(), run.clone())).collect();
        let rivals = self.contest.iter().flat_map(|contest| &contest.rivals);
        let working = rivals.filter(|rival| rival.is_at_work());
        running.extend(working.map(|rival| (rival.id.clone(), rival.run.clone())));
        running
    }

    /// The tasks of a plan that came to nothing, once all of it is over.
    pub fn missing(&self) -> Vec<MissingTask> {
        let joint = self.joint.as_ref().filter(|joint| joint.is_partial());
        joint.map(|joint| joint.missing()).unwrap_or_default()
    }

    /// Commands that must succeed when the task is done, in a repository. A part of a plan is held to
    /// what its tasks say: what the whole must do cannot be asked of it.
    pub fn acceptance(&self, repo: usize) -> Vec<String> {
        let terms = self.task.terms(repo).map(|terms| &terms.accept);
        let own = (repo == 0).then_some(&self.task.accept).or(terms);
        let joint = self.joint.as_ref();
        let own = own.filter(|_| !joint.is_some_and(|joint| joint.is_partial()));
        let mut all = own.cloned().unwrap_or_default();
        all.extend(
            joint
                .map(|joint| joint.acceptance(repo))
                .unwrap_or_default(),
        );
        all
    }

    /// A repository by its number, as an absolute path.
    pub fn repository(&self, repo: usize) -> &str {
        self.task.repository(repo)
    }

    /// A repository in a word.
    pub fn repository_name(&self, repo: usize) -> String {
        self.task.repository_name(repo)
    }

    /// Where a repository is worked on.
    pub fn place_of(&self, repo: usize) -> Option<&AgentWorkspace> {
        self.repositories.get(repo)?.place.as_ref()
    }

    /// The change of a repository, where it was delivered.
    pub fn delivered_of(&self, repo: usize) -> Option<&DeliveredView> {
        self.repositories.get(repo)?.delivered.as_ref()
    }

    /// The commit that a repository is worked on at; nothing before it is open.
    pub fn base_of(&self, repo: usize) -> &str {
        let place = self.place_of(repo);
        place.map_or("", |place| place.origin.commit.as_str())
    }

    /// What the tests of a repository said before any agent began.
    pub fn baseline_of(&self, repo: usize) -> Option<&TestBaseline> {
        self.repositories.get(repo)?.baseline.as_ref()
    }

    /// The same, with the tests that were found to be flaky since.
    pub(crate) fn steady_baseline(&self, repo: usize) -> TestBaseline {
        let known = self.baseline_of(repo).cloned().unwrap_or_default();
        match &self.joint {
            Some(joint) => joint.steady(repo, known),
            None => known,
        }
    }

    /// The same with what the tests of the first repository are known to say.
    #[must_use]
    pub(crate) fn knowing(mut self, baseline: TestBaseline) -> Self {
        if let Some(first) = self.repositories.first_mut() {
            first.baseline = Some(baseline);
        }
        self
    }

    /// What kind of evidence the task asks for, given what fails.
    pub fn intent(&self) -> TaskIntent {
        if self.goal(0).is_empty() {
            TaskIntent::Change
        } else {
            TaskIntent::Repair
        }
    }

    /// The failing tests of a repository that the task is about; none where it asks for something
    /// else, or nothing of it fails.
    pub fn goal(&self, repo: usize) -> GoalTests {
        let failing = self.baseline_of(repo).map(TestBaseline::failing);
        let failing = failing.unwrap_or_default();
        let intent = self.task.intent;
        match intent.unwrap_or_else(|| of_old_log(&self.task.text, failing.len())) {
            TaskIntent::Change => GoalTests::new(),
            TaskIntent::Repair => {
                let named = &self.task.goal;
                let meant =
                    |id: &String| named.is_empty() || named.iter().any(|name| is_meant(id, name));
                failing.into_iter().filter(meant).collect()
            }
        }
    }

    /// Whether the coder of the last attempt can be told what came of it.
    pub(crate) fn is_open(&self) -> bool {
        let last = self.made.as_ref().map(|(by, _)| by);
        let open = self.conversation.as_ref().map(|open| &open.by);
        open.is_some() && open == last
    }

    /// The conversation that the attempt under way goes on in, and why the last one failed; none where
    /// the attempt begins anew or with another model.
    pub(crate) fn goes_on_with(&self, model: &str) -> Option<(&OpenConversation, &AttemptFailure)> {
        let retry = self.retry.as_ref()?;
        let open = self
            .conversation
            .as_deref()
            .filter(|open| open.by == model)?;
        let failure = self.failures.last()?;
        (retry.target == RetryTarget::Conversation).then_some((open, failure))
    }

    /// Changes the state by one event.
    pub fn apply(&mut self, event: &RunStateEvent) {
        match event {
            RunStateEvent::Repository(event) => event.apply(&mut self.repositories),
            RunStateEvent::Fenced { fenced } => self.fenced = Some(fenced.clone()),
            RunStateEvent::Routed { lane } => self.lane = *lane,
            RunStateEvent::Planned { steps } => self.plan.clone_from(steps),
            RunStateEvent::Briefed { brief } => self.brief = Some(brief.clone()),
            RunStateEvent::Asked { part } => self.parts.push(part.clone()),
            RunStateEvent::Coded { by, summary } => {
                if let Some(chat) = &mut self.chat {
                    chat.repairing = false;
                    chat.shown = Some(summary.clone());
                }
                self.made = Some((by.clone(), summary.clone()));
                // What was judged before is not what is there now.
                self.proposal = None;
                self.verdict = None;
                self.evidence = None;
                self.confidence = None;
                for repository in &mut self.repositories {
                    repository.taken = None;
                }
            }
            RunStateEvent::HandedIn { conversation } => {
                self.conversation = Some(conversation.clone());
            }
            RunStateEvent::Executed { proposal } => self.proposal = Some(proposal.clone()),
            RunStateEvent::Failed { failure } => {
                self.failures.push(failure.clone());
                if let Some(chat) = &mut self.chat {
                    chat.came_back(&format!("{}\n{}", failure.evidence, failure.detail));
                }
            }
            RunStateEvent::Retrying { retry } => {
                if retry.target != RetryTarget::Conversation {
                    self.conversation = None;
                }
                self.retry = Some(retry.clone());
                self.lane = TaskLane::Recovery;
                self.loops += 1;
            }
            RunStateEvent::Judged { evidence, verdict } => {
                let by = self.made.as_ref().map(|(by, _)| by.as_str());
                credit(&mut self.parts, by, verdict);
                self.undecided = UndecidedChange::of(self.proposal.as_ref(), evidence, verdict);
                self.evidence = Some(evidence.as_ref().clone());
                self.verdict = Some(verdict.clone());
                if let (Some(chat), RunVerdict::Inconclusive { why }) = (&mut self.chat, verdict)
                    && !chat.takes_unverified()
                {
                    chat.came_back(why);
                }
            }
            RunStateEvent::Recalled { recalled } => self.recalled = Some(recalled.clone()),
            RunStateEvent::Rated { rating } => self.ratings.push(rating.clone()),
            RunStateEvent::Weighed { confidence } => self.confidence = Some(confidence.clone()),
            RunStateEvent::Ending { end } => self.end = Some(end.clone()),
            RunStateEvent::Answered { answer } => self.answer = Some(answer.clone()),
            // Told to people; nothing that follows depends on it.
            RunStateEvent::PlanRefused { .. }
            | RunStateEvent::Foreseen { .. }
            | RunStateEvent::Finished { .. } => {}
            RunStateEvent::Shared {
                dag,
                roles,
                other_roles,
            } => {
                let joint = SharedPlan::new(dag.clone(), roles.clone(), other_roles.clone());
                self.joint = Some(Box::new(joint));
            }
            RunStateEvent::Patched { .. }
            | RunStateEvent::PatchRefused { .. }
            | RunStateEvent::Wished { .. }
            | RunStateEvent::Told
            | RunStateEvent::Considered { .. }
            | RunStateEvent::StepChanged { .. }
            | RunStateEvent::Promised { .. }
            | RunStateEvent::Returned { .. }
            | RunStateEvent::Merged { .. } => self.together(event),
            RunStateEvent::Entered { rivals } => {
                self.contest = Some(Box::new(CandidateContest {
                    rivals: rivals.clone(),
                    others: None,
                    decided: None,
                }));
            }
            RunStateEvent::CameBack { .. }
            | RunStateEvent::Dismissed { .. }
            | RunStateEvent::Compared { .. }
            | RunStateEvent::Chosen { .. } => {
                self.contested(event);
            }
            RunStateEvent::Reviewed { review } => self.review = Some(review.clone()),
            RunStateEvent::Chat { what, .. } => self.talked(what),
            RunStateEvent::Steered { notes } => self.notes.extend(notes.iter().cloned()),
            RunStateEvent::Reworded { text } => self.task.reword(text),
            RunStateEvent::Preferring { model } => {
                self.task.models.sort_by_key(|choice| choice.name != *model);
            }
        }
    }

    /// What happens in a chat. What is said first of all is the task.
    fn talked(&mut self, what: &ChatEvent) {
        let Some(chat) = &mut self.chat else { return };
        match what {
            ChatEvent::Said { text } if !chat.begun => text.clone_into(&mut self.task.text),
            ChatEvent::Repairing => self.task.intent = Some(TaskIntent::Repair),
            _ => {}
        }
        chat.apply(what);
    }

    /// What happens among several who try the same.
    fn contested(&mut self, event: &RunStateEvent) {
        let Some(contest) = &mut self.contest else {
            return;
        };
        match event {
            RunStateEvent::CameBack { returned } => contest.came_back(returned),
            RunStateEvent::Dismissed { back } => {
                for returned in back {
                    contest.came_back(returned);
                }
                contest.dismissed();
            }
            RunStateEvent::Compared { others } => contest.others = Some(others.clone()),
            RunStateEvent::Chosen { decided } => contest.decided = Some(decided.clone()),
            _ => {}
        }
    }

    /// What happens among several agents.
    fn together(&mut self, event: &RunStateEvent) {
        let Some(joint) = &mut self.joint else { return };
        match event {
            RunStateEvent::Patched { dag, .. } => joint.dag = dag.clone(),
            RunStateEvent::PatchRefused { .. } => joint.refused += 1,
            RunStateEvent::Wished { wish, answer, .. } => joint.wishes.decide(wish, answer),
            RunStateEvent::Told => joint.wishes.owed.clear(),
            RunStateEvent::Considered { step } => {
                joint.considered.insert(step.clone());
            }
            RunStateEvent::StepChanged { change } => joint.advance(change),
            RunStateEvent::Promised { run, limits } => {
                joint.promised.insert(run.clone(), limits.clone());
            }
            RunStateEvent::Returned { step, returned } => {
                joint.promised.remove(&returned.run);
                joint
                    .returned
                    .insert(step.clone(), returned.as_ref().clone());
            }
            RunStateEvent::Merged {
                step,
                tests,
                candidate,
                flaky,
            } => {
                let repo = joint.dag.steps.get(step).map(|entry| entry.step.repo);
                if let Some(repo) = repo {
                    joint.note_flaky(repo, flaky);
                }
                if let (Some(tests), Some(repo)) = (tests, repo) {
                    joint.tests.insert(repo, tests.as_ref().clone());
                }
                if let Some(candidate) = candidate {
                    joint.candidates.insert(step.clone(), candidate.clone());
                }
            }
            _ => {}
        }
    }
}
