//! What the rules say about acts that a run has before it. Nothing is done, held or recorded.

use lula_gate::rules::{GateAct, Ruling};
use lula_protocol::WorkspaceId;

use super::refusal::RequestRefusal;
use super::{RunnerService, gate, scope};
use lula_runner_api::{ActRuling, ActRulings, ForeseenAct, JudgeActs, RulingView};

/// Most acts that are judged in one request.
const ACTS: usize = 128;

impl RunnerService {
    /// Judges acts as they would be judged when they are done in this workspace.
    pub fn judge(&self, id: &WorkspaceId, asked: &JudgeActs) -> Result<ActRulings, RequestRefusal> {
        if asked.acts.len() > ACTS {
            let message = format!("at most {ACTS} acts are judged at once");
            return Err(RequestRefusal::BadRequest(message));
        }
        let room = self.room(id)?;
        let judged = |act: &ForeseenAct| {
            let act = match act {
                ForeseenAct::Call { action } => GateAct::of(action),
                ForeseenAct::Deliver => GateAct::commit::<&str>(Vec::new(), []),
            };
            let verdict = gate::judge(&room.rules, &scope::within(act, &room.invariants()));
            ActRuling {
                ruling: match verdict.ruling {
                    Ruling::Allow => RulingView::Allow,
                    Ruling::Ask => RulingView::Ask,
                    Ruling::Deny => RulingView::Deny,
                },
                rule: verdict.rule().map(str::to_owned),
                reason: verdict.reason(),
            }
        };
        Ok(ActRulings {
            rulings: asked.acts.iter().map(judged).collect(),
        })
    }
}
