//! The state of a run: what its events add up to. `apply` is pure and total.

mod event;
mod parts;

use lula_protocol::RunId;
use serde::{Deserialize, Serialize};

use crate::choose::{Part, credit};
use crate::dag::JobId;
use crate::glean::{Confidence, Rating};
use crate::hands::{Delivered, Place};
use crate::intent::{is_meant, of_old_log};
use crate::lessons::Recalled;
use crate::recover::Failure;
use crate::route::Lane;
use crate::task::{Intent, Task};
use crate::team::{Contest, Joint, agent_run};
use crate::verdict::{Evidence, Goal, Verdict};
use crate::world::Fenced;

pub use event::Event;
pub use lula_repair::trial::Baseline;
pub use parts::{Answer, Brief, End, Produced, Retry, Site};

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

    /// Commands that must succeed when the task is done, in a repository.
    pub fn acceptance(&self, repo: usize) -> Vec<String> {
        let terms = self.task.terms(repo).map(|terms| &terms.accept);
        let own = (repo == 0).then_some(&self.task.accept).or(terms);
        let mut all = own.cloned().unwrap_or_default();
        let joint = self.joint.as_ref();
        all.extend(
            joint
                .map(|joint| joint.acceptance(repo))
                .unwrap_or_default(),
        );
        all
    }

    /// How many repositories there are.
    pub fn repositories(&self) -> usize {
        1 + self.task.also.len()
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

    /// What kind of evidence the task asks for, given what fails.
    pub fn intent(&self) -> Intent {
        if self.goal(0).is_empty() {
            Intent::Change
        } else {
            Intent::Repair
        }
    }

    /// The failing tests of a repository that the task is about; none where it asks for something
    /// else, or nothing of it fails.
    pub fn goal(&self, repo: usize) -> Goal {
        let failing = self.baseline_of(repo).map(Baseline::failing);
        let failing = failing.unwrap_or_default();
        let intent = self.task.intent;
        match intent.unwrap_or_else(|| of_old_log(&self.task.text, failing.len())) {
            Intent::Change => Goal::new(),
            Intent::Repair => {
                let named = &self.task.goal;
                let meant =
                    |id: &String| named.is_empty() || named.iter().any(|name| is_meant(id, name));
                failing.into_iter().filter(meant).collect()
            }
        }
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
            Event::Shared {
                dag,
                roles,
                roles_too,
            } => {
                let joint = Joint::new(dag.clone(), roles.clone(), roles_too.clone());
                self.joint = Some(Box::new(joint));
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
            Event::Reworded { text } => self.task.reword(text),
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
