//! The results of a run in several repositories, delivered to all of them or to none.

use std::collections::BTreeSet;

use lula_audit::{Decided, Ended, Entry as Recorded};
use lula_gate::rules::{Act, Ruling, Verdict};
use lula_protocol::digest::Domain;
use lula_protocol::{Digest, Principal};
use lula_workspace::Checkout;
use lula_workspace::checkout::{self, Branch, CheckoutError, Delivery, Part, Taken};

use super::before::Before;
use super::checkouts::{BRANCH, shown_whole};
use super::clock::now_ms;
use super::commit::Gated;
use super::effect::Stored;
use super::gate::{self, Asked, Shown};
use super::lines::message;
use super::refusal::Refusal;
use super::room::Room;
use super::{Hands, scope, views};
use crate::api::{DeliverAll, DeliverPart, DeliveredAll, DeliveredView};

/// What it is called in the audit.
pub(super) const TOOL: &str = "deliver_all";
/// Most repositories.
const PARTS: usize = 16;

/// A part with all that is known of it.
struct Loaded<'a> {
    part: &'a DeliverPart,
    checkout: Checkout,
    taken: Taken,
    verdict: Verdict,
    rules: Digest,
}

impl Hands {
    /// Makes the branches of all judged changes, or none of them, if the rules say so.
    pub fn deliver_all(
        &self,
        who: &Principal,
        asked: &DeliverAll,
    ) -> Result<Gated<DeliveredAll>, Refusal> {
        check(asked)?;
        let plain = DeliverAll {
            epoch: 0,
            ..asked.clone()
        };
        let call = Digest::of(Domain::Effect, &(TOOL, &plain))
            .map_err(|error| Refusal::BadRequest(format!("the request has no digest: {error}")))?;
        // Always in one order, so that two deliveries never wait for each other.
        let ids: BTreeSet<_> = asked.parts.iter().map(|part| &part.workspace).collect();
        let rooms = ids.iter().map(|id| self.room(id));
        let rooms = rooms.collect::<Result<Vec<_>, _>>()?;
        let turns = rooms.iter().map(|room| room.turn());
        let _turns = turns.collect::<Result<Vec<_>, _>>()?;
        let first = &asked.parts[0].workspace;
        let entry = self.entry_of(first, &asked.effect, (&asked.run, asked.epoch), call);
        let agreed = match self.known(None, &entry)? {
            Stored::Result(stored) => return Ok(Gated::Done(stored)),
            Stored::Agreed(subject) => Some(subject),
            Stored::Nothing => None,
        };
        let mut parts = Vec::new();
        for part in &asked.parts {
            let room = rooms.iter().find(|room| room.id == part.workspace);
            let gone = || Refusal::NoWorkspace(part.workspace.clone());
            parts.push(self.load(part, room.ok_or_else(gone)?)?);
        }
        let verdict = strictest(&parts)?;
        let shown = shown(&parts)?;
        let versions: Vec<Digest> = parts.iter().map(|part| part.rules).collect();
        let question = Asked {
            rules: Digest::of(Domain::Effect, &versions)
                .map_err(|error| Refusal::Internal(error.to_string()))?,
            verdict: &verdict,
            tool: TOOL,
            call,
            shown: &shown,
            who,
            agreed,
            class: entry.class,
            beforehand: self.setup.beforehand,
        };
        let about: Vec<&str> = asked
            .parts
            .iter()
            .map(|part| part.branch.as_str())
            .collect();
        let recorded = |decided: Decided, outcome| Recorded {
            time_ms: now_ms(),
            principal: who.clone(),
            run: Some(asked.run.clone()),
            effect: Some(asked.effect.clone()),
            tool: TOOL.to_owned(),
            about: about.join(" "),
            call,
            decision: decided,
            outcome,
            receipt: None,
            diff: Some(shown.base_tree),
        };
        // A branch that is in the way stops all of it here.
        let branches = parts.iter().map(|part| {
            checkout::prepare(&Part {
                checkout: &part.checkout,
                taken: &part.taken,
                order: Delivery {
                    branch: &part.part.branch,
                    message: &part.part.message,
                    at: part.part.at,
                },
            })
        });
        let branches = branches.collect::<Result<Vec<_>, _>>()?;
        let before = Before::Branches(branches.clone());
        let decided = match self.admit(&entry, &before, &question, &recorded)? {
            Ok(decided) => decided,
            Err(outcome) => return Ok(Gated::held(&asked.effect, outcome)),
        };
        let git = self.git()?;
        let created = parts
            .iter()
            .zip(&branches)
            .try_for_each(|(part, branch)| part.checkout.bring(&branch.commit))
            .and_then(|()| checkout::create_all(git, &branches));
        match created {
            Ok(()) => {
                let delivered = delivered(&branches);
                let recorded = recorded(decided, Ended::Done { status: None });
                self.store_result(&asked.effect, &delivered, &recorded)?;
                Ok(Gated::Done(delivered))
            }
            Err(error) => {
                self.ledger().forget(&asked.effect)?;
                Err(error.into())
            }
        }
    }

    fn load<'a>(&self, part: &'a DeliverPart, room: &Room) -> Result<Loaded<'a>, Refusal> {
        let checkout = self.checkout(&part.workspace)?;
        let taken = checkout.take(&room.workspace())?;
        if taken.digest != part.tree {
            let message = format!(
                "{} is not what was judged any more; run the task again",
                part.workspace
            );
            return Err(CheckoutError::Refused(message).into());
        }
        shown_whole(&taken)?;
        let paths = taken.files.iter().map(|file| file.path.clone());
        let added = lula_gate::rules::added_lines(&taken.diff);
        let act = Act::commit(paths.collect::<Vec<_>>(), [added]);
        Ok(Loaded {
            part,
            verdict: gate::judge(&room.rules, &scope::within(act, &room.invariants)),
            rules: gate::version(&room.rules)?,
            checkout,
            taken,
        })
    }
}

fn check(asked: &DeliverAll) -> Result<(), Refusal> {
    let bad = |message: String| Err(Refusal::BadRequest(message));
    if asked.parts.is_empty() || asked.parts.len() > PARTS {
        return bad(format!("a delivery has 1 to {PARTS} parts"));
    }
    for part in &asked.parts {
        message(&part.message)?;
        if part.branch.is_empty() || part.branch.len() > BRANCH {
            return bad(format!("a branch has 1 to {BRANCH} bytes"));
        }
    }
    let ids: BTreeSet<_> = asked.parts.iter().map(|part| &part.workspace).collect();
    if ids.len() < asked.parts.len() {
        return bad("a workspace is delivered once".to_owned());
    }
    Ok(())
}

/// What all rules say about all parts: the strictest, and everything that any of them asks for.
fn strictest(parts: &[Loaded<'_>]) -> Result<Verdict, Refusal> {
    let mut all = parts[0].verdict.clone();
    let asks = |verdict: &Verdict| verdict.ruling == Ruling::Ask;
    let roles: BTreeSet<_> = parts
        .iter()
        .filter(|part| asks(&part.verdict))
        .filter_map(|part| part.verdict.terms.role.clone())
        .collect();
    if roles.len() > 1 {
        let message = "the repositories ask people of different roles: deliver them one by one";
        return Err(CheckoutError::Refused(message.to_owned()).into());
    }
    for part in &parts[1..] {
        let verdict = &part.verdict;
        all.because.extend(verdict.because.iter().cloned());
        all.terms = match (asks(&all), asks(verdict)) {
            (false, true) => verdict.terms.clone(),
            (true, false) => all.terms,
            _ => all.terms.strictest(&verdict.terms),
        };
        all.beforehand &= verdict.beforehand;
        all.ruling = all.ruling.max(verdict.ruling);
    }
    all.because
        .sort_by_key(|because| std::cmp::Reverse(because.ruling));
    Ok(all)
}

/// All changes, as people see them before they agree.
fn shown(parts: &[Loaded<'_>]) -> Result<Shown, Refusal> {
    let mut rendered = String::new();
    for part in parts {
        let repository = part.checkout.origin().repository.display().to_string();
        let line = format!("# {} in {}\n", part.part.branch, repository.escape_debug());
        rendered.push_str(&line);
        for file in &part.taken.files {
            rendered.push_str(&views::labels(&file.path));
        }
        rendered.push_str(&part.taken.diff);
    }
    let trees: Vec<Digest> = parts.iter().map(|part| part.taken.digest).collect();
    let base_tree =
        Digest::of(Domain::Effect, &trees).map_err(|error| Refusal::Internal(error.to_string()))?;
    Ok(Shown {
        rendered,
        base_tree,
    })
}

/// What is told of branches that are all there.
pub(super) fn delivered(branches: &[Branch]) -> DeliveredAll {
    let view = |branch: &Branch| DeliveredView {
        branch: Some(
            branch
                .name
                .strip_prefix("refs/heads/")
                .unwrap_or(&branch.name)
                .to_owned(),
        ),
        commit: Some(branch.commit.clone()),
        directory: None,
        workspace: None,
    };
    DeliveredAll {
        parts: branches.iter().map(view).collect(),
    }
}
