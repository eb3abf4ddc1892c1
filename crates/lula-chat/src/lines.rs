//! The conversation for programs: a JSON document on each line of standard input and output.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use lula_agents::chat::ChatChoice;
use lula_host::HostError;
use lula_host::chat::{ChatSession, ChatWait, DriverNews, Heard};
use lula_protocol::{ApprovalDecision, RunExit};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ChatSetup;

/// How long news are waited for before standard input is looked at again.
const LOOK: Duration = Duration::from_millis(20);

/// What a program asks for.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum LineOrder {
    /// Says something: the model has a turn. While it has one, it hears it with its next step.
    Say { text: String },
    /// Chooses what comes next; `note` is a command, or the name of a model.
    Choose {
        choice: String,
        #[serde(default)]
        note: String,
    },
    /// Answers the model with one of its options.
    Answer {
        choice: String,
        #[serde(default)]
        note: String,
    },
    /// Agrees to exactly what was shown, or does not.
    Approve { yes: bool },
    /// Stops the step under way, or the turn.
    Stop {
        #[serde(default)]
        turn: bool,
    },
    /// Asks for the change as it is.
    Change,
    /// Leaves the change held.
    Leave,
    /// Drops it, and ends the run.
    Discard,
}

struct LineChat<'a> {
    setup: &'a ChatSetup<'a>,
    chat: Option<(ChatSession<'a>, Receiver<Heard>)>,
    /// Whether the run is being driven.
    working: bool,
    exit: RunExit,
}

/// Talks with a program until it leaves or closes standard input.
pub(crate) fn converse(setup: &ChatSetup<'_>) -> Result<RunExit, HostError> {
    let mut talk = LineChat {
        setup,
        chat: None,
        working: false,
        exit: RunExit::Verified,
    };
    match &setup.run {
        Some(name) => {
            talk.chat = Some(ChatSession::resume(
                name,
                setup.flags.clone(),
                setup.installation,
            )?);
            talk.rested()?;
        }
        None => tell(&json!({"news": "waiting", "wait": {"waits_for": "your_turn"}})),
    }
    let (send, orders) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    if let Some(words) = &setup.words {
        talk.say(words)?;
    }
    loop {
        match orders.try_recv() {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => match serde_json::from_str::<LineOrder>(&line) {
                Ok(LineOrder::Leave) => break,
                Ok(order) => {
                    if let Err(error) = talk.take(order) {
                        tell(&json!({"news": "refused", "why": error.to_string()}));
                    }
                }
                Err(error) => tell(&json!({"news": "refused", "why": error.to_string()})),
            },
            // The turn under way is seen to its end.
            Err(TryRecvError::Disconnected) if !talk.working => break,
            Err(TryRecvError::Disconnected | TryRecvError::Empty) => talk.hear()?,
        }
    }
    if let Some((mut session, _)) = talk.chat.take() {
        session.leave();
    }
    Ok(talk.exit)
}

fn tell(document: &Value) {
    let mut out = io::stdout().lock();
    // Its reader is gone if this fails, and so is the reason to go on.
    let _ = writeln!(out, "{document}").and_then(|()| out.flush());
}

impl<'a> LineChat<'a> {
    /// The chat; a new one where there is none, about these words.
    fn opened(&mut self, words: &str) -> Result<&mut ChatSession<'a>, HostError> {
        if self.chat.is_none() {
            let setup = self.setup;
            let task = (setup.task)(words)?;
            self.chat = Some(ChatSession::begin(
                &task,
                setup.limits.clone(),
                setup.flags.clone(),
                setup.installation,
            )?);
        }
        match &mut self.chat {
            Some((session, _)) => Ok(session),
            None => Err(HostError::Internal("there is no chat".to_owned())),
        }
    }

    fn say(&mut self, text: &str) -> Result<(), HostError> {
        let begins = self.chat.is_none();
        let working = self.working;
        let session = self.opened(text)?;
        if begins {
            session.go_on()?;
        } else if working {
            return session.steer(text);
        } else {
            session.choose(ChatChoice::Say, text)?;
        }
        self.working = true;
        Ok(())
    }

    fn take(&mut self, order: LineOrder) -> Result<(), HostError> {
        match order {
            LineOrder::Say { text } => return self.say(&text),
            LineOrder::Choose { choice, note } => {
                let begins = self.chat.is_none();
                if begins {
                    self.opened("")?.go_on()?;
                    self.working = true;
                    while self.working {
                        self.hear()?;
                    }
                }
                self.opened("")?.answer(&choice, &note)?;
            }
            LineOrder::Answer { choice, note } => self.opened("")?.answer(&choice, &note)?,
            LineOrder::Approve { yes } => self.approve(yes)?,
            LineOrder::Stop { turn } => {
                if let Some((session, _)) = &mut self.chat {
                    session.stop(turn);
                }
                return Ok(());
            }
            LineOrder::Change => {
                if let Some((session, _)) = &mut self.chat {
                    if !session.has_driver() {
                        session.go_on()?;
                        self.working = true;
                    }
                    session.ask_change();
                }
                return Ok(());
            }
            LineOrder::Discard => {
                if let Some((mut session, _)) = self.chat.take() {
                    let summary = session.discard()?;
                    tell(&json!({"news": "discarded", "summary": summary}));
                }
                return Ok(());
            }
            LineOrder::Leave => return Ok(()),
        }
        self.working = true;
        Ok(())
    }

    fn approve(&mut self, yes: bool) -> Result<(), HostError> {
        let Some((session, _)) = &mut self.chat else {
            return Err(HostError::Internal("nothing is asked".to_owned()));
        };
        let decision = if yes {
            ApprovalDecision::Approve
        } else {
            ApprovalDecision::Reject
        };
        match session.view()?.wait {
            ChatWait::Approval { approval, .. } => match session.question(&approval)? {
                Some(question) => session.decide(&question, decision),
                None => Err(HostError::Internal(format!("{approval} is not here"))),
            },
            ChatWait::Delivery { .. } => session.decide_delivery(decision),
            ChatWait::Budget { .. } if yes => session.raise(),
            _ => Err(HostError::Internal("nothing is asked".to_owned())),
        }
    }

    /// Takes the next news, if some come soon.
    fn hear(&mut self) -> Result<(), HostError> {
        let Some((session, heard)) = &mut self.chat else {
            std::thread::sleep(LOOK);
            return Ok(());
        };
        match heard.recv_timeout(LOOK) {
            Ok(Heard::News(DriverNews::Rested)) => self.rested(),
            Ok(Heard::News(DriverNews::Failed { error })) => {
                session.driver_gone();
                self.working = false;
                self.exit = error.exit;
                tell(&json!({"news": "failed", "error": error}));
                Ok(())
            }
            Ok(Heard::News(news)) => {
                tell(&serde_json::to_value(&news).unwrap_or_default());
                Ok(())
            }
            Ok(Heard::Gone) => {
                session.driver_gone();
                if self.working && !session.is_at_rest()? {
                    return session.go_on();
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    /// Tells what the run waits for.
    fn rested(&mut self) -> Result<(), HostError> {
        self.working = false;
        let Some((session, _)) = &mut self.chat else {
            return Ok(());
        };
        let view = session.view()?;
        let mut document = json!({
            "news": "waiting",
            "run": session.run(),
            "wait": view.wait,
            "words": view.words(),
            "turn": view.turn_end(),
            "shown": view.shown(),
            "spent": view.report().spent,
        });
        if let ChatWait::Approval { approval, .. } = &view.wait
            && let Some(question) = session.question(approval)?
        {
            document["rendered"] = String::from_utf8_lossy(&question.rendered).into();
        }
        if view.wait == ChatWait::Over {
            let report = view.report();
            self.exit = report.exit;
            document["report"] = serde_json::to_value(&report).unwrap_or_default();
            session.leave();
            self.chat = None;
        }
        tell(&document);
        Ok(())
    }
}
