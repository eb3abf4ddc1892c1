//! What changes the state of a run.

use lula_protocol::{Amounts, EffectId, RunId};
use lula_repair::trial::Results;
use serde::{Deserialize, Serialize};

use super::parts::{Answer, Brief, End, Produced, Retry, Site};
use crate::choose::Part;
use crate::crew::Returned;
use crate::dag::{Dag, JobId, Patch, Step};
use crate::deeds::Taken;
use crate::glean::{Confidence, Rating};
use crate::hands::{Delivered, Place, Said};
use crate::lessons::Recalled;
use crate::recover::Failure;
use crate::route::Lane;
use crate::team::{Candidate, Decided, Rival, Roles};
use crate::verdict::{Evidence, Verdict};
use crate::work::Baseline;
use crate::world::Fenced;

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
        /// The same as the other repositories want them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        roles_too: Vec<Roles>,
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
