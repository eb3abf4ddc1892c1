//! The state of a run: what its events add up to. `apply` is pure and total.

use lula_protocol::{Amounts, Digest, EffectId, RunId};
use lula_repair::trial::Results;
use serde::{Deserialize, Serialize};

use crate::choose::{Part, credit};
use crate::crew::Returned;
use crate::dag::{Dag, JobId, Patch, Step};
use crate::deeds::Taken;
use crate::glean::{Confidence, Rating};
use crate::hands::{Delivered, Place, Said};
use crate::lessons::Recalled;
use crate::recover::{Failure, Target};
use crate::route::Lane;
use crate::task::{Intent, Task, intent};
use crate::team::{Candidate, Contest, Decided, Joint, Rival, Roles, agent_run};
use crate::verdict::{Evidence, Verdict};
use crate::world::Fenced;

pub use lula_repair::trial::Baseline;

/// What a coder is told about the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brief {
    /// Files of the project, as many as fit.
    pub files: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// Files that matter most, the likeliest first.
    pub likely: Vec<String>,
    /// The map: what the project defines that matters for the task.
    pub map: String,
    /// What the project says to whoever changes it: files with their beginnings.
    pub instructions: Vec<(String, String)>,
    /// Where words of the task stand.
    pub hits: Vec<String>,
}

/// What a coder made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Produced {
    /// Who: the name of a model, or `repairer`.
    pub by: String,
    /// In one sentence.
    pub summary: String,
    /// The change, as a unified diff.
    pub diff: String,
    /// The files it touches.
    pub files: Vec<String>,
    /// The state of the workspace.
    pub tree: Digest,
}

/// Another repository of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The repository, as an absolute path.
    pub repository: String,
    /// Where it is worked on.
    pub place: Place,
    /// Its tests before.
    pub baseline: Option<Baseline>,
    /// The change, as it is.
    pub taken: Option<Taken>,
    /// Where the change is.
    pub delivered: Option<Delivered>,
}

/// What somebody found out who changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Who.
    pub by: String,
    /// What.
    pub text: String,
    /// Whether a reviewer agrees.
    pub approve: Option<bool>,
}

/// Another try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// From where.
    pub target: Target,
    /// Whether somebody else should try.
    pub another_mind: bool,
}

/// Why a run ends before a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case", deny_unknown_fields)]
pub enum End {
    /// The task cannot be worked on as it is.
    Rejected {
        /// Why.
        why: String,
    },
    /// It was given up.
    Halted {
        /// Why.
        why: String,
    },
    /// Nothing that can be seen would decide about a change.
    Unclear {
        /// Why.
        why: String,
    },
    /// It needs a model, and none is configured.
    NeedsModel {
        /// What for.
        why: String,
    },
    /// This machine cannot do it as it is.
    Environment {
        /// Why.
        why: String,
    },
    /// A plan was asked for, and there it is.
    Planned {
        /// How many tasks it has.
        tasks: usize,
    },
    /// There was nothing to do: every test passes.
    NothingToDo {
        /// How many tests pass.
        passing: usize,
    },
}

/// What changes the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The workspace is open.
    Opened {
        /// Where.
        place: Place,
    },
    /// So are those of other repositories.
    OpenedToo {
        /// Where.
        sites: Vec<Site>,
    },
    /// The tests of another repository were looked at.
    ExaminedToo {
        /// Which repository.
        site: usize,
        /// What they say.
        baseline: Box<Baseline>,
    },
    /// The change of another repository is this.
    TakenToo {
        /// Which repository.
        site: usize,
        /// What the change is.
        taken: Taken,
    },
    /// The change of another repository arrived.
    DeliveredToo {
        /// Which repository.
        site: usize,
        /// Where.
        delivered: Delivered,
    },
    /// It was tried how far whoever drives the run is kept away from what it works on.
    Fenced {
        /// What came of it.
        fenced: Fenced,
    },
    /// The lane is chosen.
    Routed {
        /// Which.
        lane: Lane,
    },
    /// A plan is made.
    Planned {
        /// Its steps.
        steps: Vec<String>,
    },
    /// The tests were looked at.
    Examined {
        /// What they say.
        baseline: Box<Baseline>,
    },
    /// The context is collected.
    Briefed {
        /// What it is.
        brief: Brief,
    },
    /// A model was asked for its part.
    Asked {
        /// What came of it, before anybody judged it.
        part: Part,
    },
    /// A coder is done.
    Coded {
        /// Who.
        by: String,
        /// In one sentence.
        summary: String,
    },
    /// The change is this.
    Executed {
        /// What the change is.
        produced: Produced,
    },
    /// An attempt failed.
    Failed {
        /// How.
        failure: Failure,
    },
    /// Another try begins.
    Retrying {
        /// From where.
        retry: Retry,
    },
    /// The change was judged.
    Judged {
        /// On what.
        evidence: Box<Evidence>,
        /// How.
        verdict: Verdict,
    },
    /// Lessons were chosen for the coder.
    Recalled {
        /// Which.
        recalled: Recalled,
    },
    /// A step was rated by guidelines.
    Rated {
        /// How.
        rating: Rating,
    },
    /// It was weighed how sure to be of the change.
    Weighed {
        /// How sure.
        confidence: Confidence,
    },
    /// The run comes to its end without a verdict.
    Ending {
        /// Why.
        end: End,
    },
    /// The change arrived.
    Delivered {
        /// Where.
        delivered: Delivered,
    },
    /// Somebody who changes nothing is done.
    Answered {
        /// What was found out.
        answer: Answer,
    },
    /// The work is shared: this is the plan.
    Shared {
        /// The plan.
        dag: Dag,
        /// Who the agents can be.
        roles: Roles,
    },
    /// A plan was not accepted.
    PlanRefused {
        /// Whose.
        by: String,
        /// Why, in sentences.
        reasons: Vec<String>,
    },
    /// The plan was changed while it runs.
    Patched {
        /// By whom.
        by: String,
        /// How.
        patch: Patch,
        /// What it is now.
        dag: Dag,
    },
    /// The plan was not changed.
    PatchRefused {
        /// Whose wish it was.
        by: String,
        /// Why not.
        reason: String,
    },
    /// An agent wanted the plan changed, and this is what it is told.
    Wished {
        /// Which wish.
        wish: EffectId,
        /// Of whoever works on this.
        job: JobId,
        /// What was decided.
        answer: Said,
    },
    /// Agents know what was decided.
    Told,
    /// Somebody thought about a job that failed.
    Considered {
        /// Which.
        job: JobId,
    },
    /// Something happened to a job.
    Job {
        /// What.
        change: Step,
    },
    /// An agent at work was promised this.
    Promised {
        /// Its run.
        run: RunId,
        /// What it may spend.
        limits: Amounts,
    },
    /// An agent came back.
    Returned {
        /// From which job.
        job: JobId,
        /// With what.
        returned: Box<Returned>,
    },
    /// What a job produced was held against the whole.
    Merged {
        /// Which job.
        job: JobId,
        /// What the tests say of the whole now, where they were run.
        tests: Option<Box<Results>>,
        /// What did not fit, where it did not.
        candidate: Option<Candidate>,
    },
    /// Several try the same: these.
    Entered {
        /// Who.
        rivals: Vec<Rival>,
    },
    /// One of them came back.
    CameBack {
        /// With what.
        returned: Box<Returned>,
    },
    /// The others were stopped.
    Dismissed {
        /// Those who were done before that.
        back: Vec<Returned>,
    },
    /// One of them was taken, or nobody.
    Chosen {
        /// Who, and why.
        decided: Decided,
    },
    /// A person said something to whoever works on it.
    Steered {
        /// What.
        notes: Vec<String>,
    },
    /// A fork goes on with another task text.
    Reworded {
        /// The new text.
        text: String,
    },
    /// A fork goes on with another model first.
    Preferring {
        /// Its name.
        model: String,
    },
}

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// What is asked for.
    pub task: Task,
    /// How it is worked on.
    pub lane: Lane,
    /// What people said meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where.
    pub place: Option<Place>,
    /// The other repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<Site>,
    /// How far whoever drives the run is kept away from there.
    pub fenced: Option<Fenced>,
    /// The plan, where one was made.
    pub plan: Vec<String>,
    /// The tests before.
    pub baseline: Option<Baseline>,
    /// The context.
    pub brief: Option<Brief>,
    /// Who was done last, and what they say of it.
    pub made: Option<(String, String)>,
    /// Every model that was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The change, as it is.
    pub produced: Option<Produced>,
    /// Every failed attempt.
    pub failures: Vec<Failure>,
    /// The try under way, where it is not the first.
    pub retry: Option<Retry>,
    /// How many more tries were made.
    pub loops: u32,
    /// What the verdict rests on.
    pub evidence: Option<Evidence>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The lessons that were chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<Recalled>,
    /// The ratings of every step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratings: Vec<Rating>,
    /// How sure to be of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Why the run ended without one.
    pub end: Option<End>,
    /// Where the change is.
    pub delivered: Option<Delivered>,
    /// What was found out, where nothing was to be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// How far several agents are together, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<Box<Joint>>,
    /// How far those are who try the same, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contest: Option<Box<Contest>>,
}

impl Work {
    /// A task nobody has looked at.
    pub fn begin(task: Task) -> Self {
        let handed = task.handoff.as_ref();
        let baseline = handed.and_then(|handoff| handoff.baseline.as_deref().cloned());
        Self {
            task,
            lane: Lane::Interactive,
            notes: Vec::new(),
            place: None,
            sites: Vec::new(),
            fenced: None,
            plan: Vec::new(),
            baseline,
            brief: None,
            made: None,
            parts: Vec::new(),
            produced: None,
            failures: Vec::new(),
            retry: None,
            loops: 0,
            evidence: None,
            verdict: None,
            recalled: None,
            ratings: Vec::new(),
            confidence: None,
            end: None,
            delivered: None,
            answer: None,
            joint: None,
            contest: None,
        }
    }

    /// Every agent that was begun for this run: what it worked on, and its run.
    pub fn agents(&self, run: &RunId) -> Vec<(JobId, RunId)> {
        let mut agents = Vec::new();
        let jobs = self.joint.iter().flat_map(|joint| &joint.dag.jobs);
        for (id, entry) in jobs {
            let attempts = 0..entry.attempts;
            agents.extend(attempts.map(|attempt| (id.clone(), agent_run(run, id, attempt))));
        }
        let rivals = self.contest.iter().flat_map(|contest| &contest.rivals);
        agents.extend(rivals.map(|rival| (rival.id.clone(), rival.run.clone())));
        agents
    }

    /// The runs of those of them that work.
    pub fn agents_at_work(&self) -> Vec<RunId> {
        let jobs = self.joint.iter().flat_map(|joint| joint.dag.running());
        let mut running: Vec<RunId> = jobs.map(|(_, run)| run.clone()).collect();
        running.extend(self.contest.iter().flat_map(|contest| contest.at_work()));
        running
    }

    /// Commands that must succeed when the task is done, in the first repository.
    pub fn acceptance(&self) -> Vec<String> {
        let mut all = self.task.accept.clone();
        all.extend(self.acceptance_of(0));
        all
    }

    /// Commands that must succeed for what agents did in a repository.
    pub fn acceptance_of(&self, repo: usize) -> Vec<String> {
        let joint = self.joint.as_ref();
        joint
            .map(|joint| joint.acceptance(repo))
            .unwrap_or_default()
    }

    /// How many repositories there are.
    pub fn repositories(&self) -> usize {
        1 + self.task.also.len()
    }

    /// A repository by its number, as an absolute path.
    pub fn repository(&self, repo: usize) -> &str {
        let also = || self.task.also.get(repo.checked_sub(1)?);
        also().unwrap_or(&self.task.repository)
    }

    /// A repository in a word: the name of its directory, with its number where that is not enough.
    pub fn repository_name(&self, repo: usize) -> String {
        let name = |repo: usize| {
            let path = self.repository(repo).trim_end_matches('/');
            path.rsplit('/').next().unwrap_or_default()
        };
        let others = (0..self.repositories()).filter(|other| *other != repo);
        if others.map(name).any(|other| other == name(repo)) {
            return format!("{}-{}", name(repo), repo + 1);
        }
        name(repo).to_owned()
    }

    /// Where a repository is worked on.
    pub fn place_of(&self, repo: usize) -> Option<&Place> {
        match repo.checked_sub(1) {
            None => self.place.as_ref(),
            Some(index) => self.sites.get(index).map(|site| &site.place),
        }
    }

    /// What the tests of a repository said before anybody began.
    pub fn baseline_of(&self, repo: usize) -> Option<&Baseline> {
        match repo.checked_sub(1) {
            None => self.baseline.as_ref(),
            Some(index) => self.sites.get(index)?.baseline.as_ref(),
        }
    }

    /// What kind of evidence the task asks for.
    pub fn intent(&self) -> Intent {
        let failing = self
            .baseline
            .as_ref()
            .map_or(0, |base| base.failing().len());
        intent(&self.task.text, failing)
    }

    /// Changes the state.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Opened { place } => self.place = Some(place.clone()),
            Event::OpenedToo { .. }
            | Event::ExaminedToo { .. }
            | Event::TakenToo { .. }
            | Event::DeliveredToo { .. } => self.elsewhere(event),
            Event::Fenced { fenced } => self.fenced = Some(fenced.clone()),
            Event::Routed { lane } => self.lane = *lane,
            Event::Planned { steps } => self.plan.clone_from(steps),
            Event::Examined { baseline } => self.baseline = Some(baseline.as_ref().clone()),
            Event::Briefed { brief } => self.brief = Some(brief.clone()),
            Event::Asked { part } => self.parts.push(part.clone()),
            Event::Coded { by, summary } => {
                self.made = Some((by.clone(), summary.clone()));
                // What was judged before is not what is there now.
                self.produced = None;
                self.verdict = None;
                self.evidence = None;
                self.confidence = None;
                for site in &mut self.sites {
                    site.taken = None;
                }
            }
            Event::Executed { produced } => self.produced = Some(produced.clone()),
            Event::Failed { failure } => self.failures.push(failure.clone()),
            Event::Retrying { retry } => {
                self.retry = Some(retry.clone());
                self.lane = Lane::Recovery;
                self.loops += 1;
            }
            Event::Judged { evidence, verdict } => {
                let by = self.made.as_ref().map(|(by, _)| by.as_str());
                credit(&mut self.parts, by, verdict);
                self.evidence = Some(evidence.as_ref().clone());
                self.verdict = Some(verdict.clone());
            }
            Event::Recalled { recalled } => self.recalled = Some(recalled.clone()),
            Event::Rated { rating } => self.ratings.push(rating.clone()),
            Event::Weighed { confidence } => self.confidence = Some(confidence.clone()),
            Event::Ending { end } => self.end = Some(end.clone()),
            Event::Delivered { delivered } => self.delivered = Some(delivered.clone()),
            Event::Answered { answer } => self.answer = Some(answer.clone()),
            Event::PlanRefused { .. } => {}
            Event::Shared { dag, roles } => {
                self.joint = Some(Box::new(Joint::new(dag.clone(), roles.clone())));
            }
            Event::Patched { .. }
            | Event::PatchRefused { .. }
            | Event::Wished { .. }
            | Event::Told
            | Event::Considered { .. }
            | Event::Job { .. }
            | Event::Promised { .. }
            | Event::Returned { .. }
            | Event::Merged { .. } => self.together(event),
            Event::Entered { rivals } => {
                self.contest = Some(Box::new(Contest {
                    rivals: rivals.clone(),
                    decided: None,
                }));
            }
            Event::CameBack { .. } | Event::Dismissed { .. } | Event::Chosen { .. } => {
                self.contested(event);
            }
            Event::Steered { notes } => self.notes.extend(notes.iter().cloned()),
            Event::Reworded { text } => self.task.text.clone_from(text),
            Event::Preferring { model } => self.task.models.sort_by_key(|mind| mind.name != *model),
        }
    }

    /// What happens in other repositories.
    fn elsewhere(&mut self, event: &Event) {
        let (number, change): (_, &dyn Fn(&mut Site)) = match event {
            Event::OpenedToo { sites } => {
                self.sites.clone_from(sites);
                return;
            }
            Event::ExaminedToo { site, baseline } => (site, &|site| {
                site.baseline = Some(baseline.as_ref().clone());
            }),
            Event::TakenToo { site, taken } => (site, &|site| site.taken = Some(taken.clone())),
            Event::DeliveredToo { site, delivered } => (site, &|site| {
                site.delivered = Some(delivered.clone());
            }),
            _ => return,
        };
        let index = number.checked_sub(1);
        if let Some(site) = index.and_then(|index| self.sites.get_mut(index)) {
            change(site);
        }
    }

    /// What happens among several who try the same.
    fn contested(&mut self, event: &Event) {
        let Some(contest) = &mut self.contest else {
            return;
        };
        match event {
            Event::CameBack { returned } => contest.came_back(returned),
            Event::Dismissed { back } => {
                for returned in back {
                    contest.came_back(returned);
                }
                contest.dismissed();
            }
            Event::Chosen { decided } => contest.decided = Some(decided.clone()),
            _ => {}
        }
    }

    /// What happens among several agents.
    fn together(&mut self, event: &Event) {
        let Some(joint) = &mut self.joint else { return };
        match event {
            Event::Patched { dag, .. } => joint.dag = dag.clone(),
            Event::PatchRefused { .. } => joint.refused += 1,
            Event::Wished { wish, answer, .. } => joint.wishes.decide(wish, answer),
            Event::Told => joint.wishes.owed.clear(),
            Event::Considered { job } => {
                joint.considered.insert(job.clone());
            }
            Event::Job { change } => joint.step(change),
            Event::Promised { run, limits } => {
                joint.promised.insert(run.clone(), limits.clone());
            }
            Event::Returned { job, returned } => {
                joint.promised.remove(&returned.run);
                joint
                    .returned
                    .insert(job.clone(), returned.as_ref().clone());
            }
            Event::Merged {
                job,
                tests,
                candidate,
            } => {
                let repo = joint.dag.jobs.get(job).map(|entry| entry.job.repo);
                if let (Some(tests), Some(repo)) = (tests, repo) {
                    joint.tests.insert(repo, tests.as_ref().clone());
                }
                if let Some(candidate) = candidate {
                    joint.candidates.insert(job.clone(), candidate.clone());
                }
            }
            _ => {}
        }
    }
}
