//! What confidence is made of: the reviews it is learned from, and what each feature of a change adds.

use lula_agents::CodingState;
use lula_agents::guidelines::{ENOUGH, ReviewLabel, confidence};
use lula_store::SecretGuard;
use serde::Serialize;

use crate::error::HostError;
use crate::history::History;
use crate::installation::Installation;
use crate::repository::find_git;
use crate::{runs, store};

/// How people decided about earlier changes.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct ReviewCounts {
    /// How many changes they decided about.
    pub known: usize,
    /// So many make confidence a calibrated number.
    pub enough: usize,
    /// Whether there are so many.
    pub calibrated: bool,
    /// Changes that were approved.
    pub approved: usize,
    /// Changes that were merged.
    pub merged: usize,
    /// Changes that were rejected.
    pub rejected: usize,
    /// Changes that were taken back.
    pub undone: usize,
}

impl ReviewCounts {
    /// Reads them from the runs that are kept here.
    pub fn read(installation: &Installation) -> Result<Self, HostError> {
        let enough = usize::try_from(ENOUGH).unwrap_or(usize::MAX);
        let mut counts = Self {
            enough,
            ..Self::default()
        };
        if !store::is_there(installation)? {
            return Ok(counts);
        }
        let git = find_git(installation).ok();
        let labels = runs::block_on(async {
            let store = store::open(installation, SecretGuard::default()).await?;
            History::read(store)
                .await?
                .labels(git.as_ref(), installation)
        })?;
        counts.known = labels.len();
        counts.calibrated = labels.len() >= enough;
        for one in &labels {
            *match one.label {
                ReviewLabel::Approved => &mut counts.approved,
                ReviewLabel::Merged => &mut counts.merged,
                ReviewLabel::Rejected => &mut counts.rejected,
                ReviewLabel::Undone => &mut counts.undone,
            } += 1;
        }
        Ok(counts)
    }

    /// How many decisions were in favour of the change.
    pub const fn good(&self) -> usize {
        self.approved + self.merged
    }
}

/// What one feature of a change adds to the confidence in it.
#[derive(Debug, Serialize)]
pub struct FeatureShare {
    pub feature: &'static str,
    /// The value of the feature in this change.
    pub value: f64,
    /// How far the value raises or lowers the log-odds.
    pub adds: f64,
}

/// What the confidence of a run is made of.
pub fn shares(state: &CodingState) -> Vec<FeatureShare> {
    let Some(known) = &state.confidence else {
        return Vec::new();
    };
    let calibration = state.task.guidance.calibration.as_ref();
    let weights = confidence::contributions(calibration, &known.features);
    let named = known.features.named().zip(weights);
    named
        .map(|((feature, value), adds)| FeatureShare {
            feature,
            value,
            adds,
        })
        .collect()
}
