//! The person's side of a chat: begins it, has it driven, and says in their name what they say.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use lula_agents::RunTask;
use lula_agents::chat::ChatChoice;
use lula_gate::approvals::{ApprovalDesk, StoredApproval};
use lula_protocol::{ApprovalDecision, ApprovalId, BudgetAmounts, RunId, RunInterrupt, RunSignal};
use lula_store::{RunStore, SecretGuard};

use super::news::{DriverNews, DriverOrder};
use super::waits::{ChatView, ChatWait};
use crate::approvals::{local_desk, sign_here};
use crate::drive::{self, consent, signals, worker};
use crate::error::HostError;
use crate::installation::Installation;
use crate::record::{local_principal, now_ms};
use crate::{diagnosis, runs, store};

/// Most news that wait for a person's process that is busy; the driver waits with more.
const WAITING: usize = 4096;
/// How long a driver may take to put a run down.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the person's process hears of its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    News(DriverNews),
    /// The driver is gone.
    Gone,
}

/// A chat, at the person's side.
pub struct ChatSession<'a> {
    installation: &'a Installation,
    store: Arc<dyn RunStore>,
    runtime: tokio::runtime::Runtime,
    /// Flags of the command line that are settings: they hold for the driver too.
    flags: Vec<String>,
    run: RunId,
    driver: Option<ChatDriver>,
    tell: SyncSender<Heard>,
}

/// The process that drives the run.
struct ChatDriver {
    process: Child,
    orders: ChildStdin,
}

impl<'a> ChatSession<'a> {
    fn open(
        installation: &'a Installation,
        flags: Vec<String>,
        run: impl FnOnce(&tokio::runtime::Runtime, &Arc<dyn RunStore>) -> Result<RunId, HostError>,
    ) -> Result<(Self, Receiver<Heard>), HostError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(HostError::NoRuntime)?;
        let store = runtime.block_on(store::open(installation, SecretGuard::default()))?;
        let run = run(&runtime, &store)?;
        let (tell, heard) = sync_channel(WAITING);
        let session = Self {
            installation,
            store,
            runtime,
            flags,
            run,
            driver: None,
            tell,
        };
        Ok((session, heard))
    }

    /// Begins a chat about a task.
    pub fn begin(
        task: &RunTask,
        limits: BudgetAmounts,
        flags: Vec<String>,
        installation: &'a Installation,
    ) -> Result<(Self, Receiver<Heard>), HostError> {
        Self::open(installation, flags, |runtime, store| {
            let reader = runs::reader(Arc::clone(store))?;
            runtime.block_on(drive::begin(&reader, task, limits))
        })
    }

    /// Goes on with a run that is a chat.
    pub fn resume(
        name: &str,
        flags: Vec<String>,
        installation: &'a Installation,
    ) -> Result<(Self, Receiver<Heard>), HostError> {
        let opened = Self::open(installation, flags, |runtime, store| {
            runtime.block_on(runs::named(&**store, name))
        })?;
        let known = opened.0.view()?.known;
        if known.state.chat.is_none() {
            return Err(HostError::NoChat(known.progress.run));
        }
        Ok(opened)
    }

    pub const fn run(&self) -> &RunId {
        &self.run
    }

    /// The chat as its log tells it now.
    pub fn view(&self) -> Result<ChatView, HostError> {
        let reader = runs::reader(Arc::clone(&self.store))?;
        let known = self.runtime.block_on(reader.show(&self.run, None))?;
        Ok(ChatView::of(known))
    }

    /// Has the run driven: by the driver that is there, or by a new one.
    pub fn go_on(&mut self) -> Result<(), HostError> {
        if self.driver.is_some() && self.order(&DriverOrder::Go) {
            return Ok(());
        }
        self.start()
    }

    fn start(&mut self) -> Result<(), HostError> {
        let refused = |error: std::io::Error| HostError::Background {
            run: self.run.clone(),
            error,
        };
        let program = std::env::current_exe().map_err(refused)?;
        let mut line: Vec<OsString> = ["chat", "--drive", self.run.as_str(), "--json"]
            .map(OsString::from)
            .into();
        line.extend(self.flags.iter().map(OsString::from));
        let mut process = Command::new(program)
            .args(line)
            .envs(diagnosis::variables())
            // What a person types to stop a step is for this process to read.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(refused)?;
        let missing = || refused(std::io::ErrorKind::BrokenPipe.into());
        let orders = process.stdin.take().ok_or_else(missing)?;
        let news = process.stdout.take().ok_or_else(missing)?;
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(news);
            let mut line = String::new();
            while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
                let heard = read_line(&line);
                line.clear();
                if let Some(news) = heard
                    && tell.send(Heard::News(news)).is_err()
                {
                    return;
                }
            }
            let _ = tell.send(Heard::Gone);
        });
        self.driver = Some(ChatDriver { process, orders });
        Ok(())
    }

    /// Sends an order to the driver; whether one is there to hear it.
    fn order(&mut self, order: &DriverOrder) -> bool {
        let Some(driver) = &mut self.driver else {
            return false;
        };
        let Ok(mut line) = serde_json::to_vec(order) else {
            return false;
        };
        line.push(b'\n');
        let sent = driver
            .orders
            .write_all(&line)
            .and_then(|()| driver.orders.flush());
        sent.is_ok()
    }

    /// Whether a driver is there.
    pub const fn has_driver(&self) -> bool {
        self.driver.is_some()
    }

    /// The driver is gone: another one is started when there is something to do.
    pub fn driver_gone(&mut self) {
        if let Some(mut driver) = self.driver.take() {
            let _ = driver.process.wait();
        }
    }

    /// Stops the step under way, or the whole turn. What was done stays.
    pub fn stop(&mut self, turn: bool) {
        let order = if turn {
            DriverOrder::StopTurn
        } else {
            DriverOrder::StopStep
        };
        self.order(&order);
    }

    /// Asks for the change as it is: it comes as news. Tells whether a driver was asked.
    pub fn ask_change(&mut self) -> bool {
        self.order(&DriverOrder::Change)
    }

    fn send(&self, signal: &RunSignal) -> Result<(), HostError> {
        self.runtime.block_on(self.store.send(&self.run, signal))?;
        Ok(())
    }

    /// Chooses what comes next, where it is the person's turn.
    pub fn choose(&mut self, choice: ChatChoice, note: &str) -> Result<(), HostError> {
        self.answer(choice.name(), note)
    }

    /// Answers what the run waits with, and has it go on. In the log before this returns: nothing that was
    /// said is lost.
    pub fn answer(&mut self, choice: &str, note: &str) -> Result<(), HostError> {
        let view = self.view()?;
        let by = local_principal()?;
        let mut signal = consent::choose(&view.known, choice, &by)?;
        if let RunSignal::Answer { note: said, .. } = &mut signal {
            note.clone_into(said);
        }
        self.send(&signal)?;
        self.go_on()
    }

    /// Says something while the model works: it hears it with its next step.
    pub fn steer(&mut self, text: &str) -> Result<(), HostError> {
        let by = local_principal()?;
        let text = text.to_owned();
        self.send(&RunSignal::Steer { by, text })?;
        self.order(&DriverOrder::Notice);
        Ok(())
    }

    /// The question of the runner, with exactly the bytes that would be approved.
    pub fn question(&self, approval: &ApprovalId) -> Result<Option<StoredApproval>, HostError> {
        let Some(mut desk) = local_desk(self.installation)? else {
            return Ok(None);
        };
        let stored = desk.load(approval)?;
        Ok(Some(stored).filter(StoredApproval::is_intact))
    }

    /// Answers it in the person's name, and has the run go on.
    pub fn decide(
        &mut self,
        question: &StoredApproval,
        decision: ApprovalDecision,
    ) -> Result<(), HostError> {
        if let Some(mut desk) = local_desk(self.installation)? {
            let token = sign_here(&desk, question, decision)?;
            desk.vote(&token, now_ms())?;
        }
        let view = self.view()?;
        if let Some(signal) = worker::go_on(&view.known, &local_principal()?) {
            self.send(&signal)?;
        }
        self.go_on()
    }

    /// Answers whether the change is delivered.
    pub fn decide_delivery(&mut self, decision: ApprovalDecision) -> Result<(), HostError> {
        let view = self.view()?;
        let by = local_principal()?;
        if let Some(question) = consent::question(&view.known, &by) {
            let reader = runs::reader(Arc::clone(&self.store))?;
            let answered = consent::answer(&reader, &view.known, &question, decision);
            self.runtime.block_on(answered)?;
        }
        self.go_on()
    }

    /// Raises the limit that a run waits with, to so much more than the step needs.
    pub fn raise(&mut self) -> Result<(), HostError> {
        let view = self.view()?;
        let pending = view.known.progress.pending.as_ref();
        if let Some(RunInterrupt::Budget {
            dimension, asked, ..
        }) = pending.map(|pending| &pending.interrupt)
        {
            let limit = view
                .known
                .progress
                .ledger
                .limit(*dimension)
                .unwrap_or_default();
            let by = local_principal()?;
            let to = limit.saturating_mul(2).max(limit.saturating_add(*asked));
            let dimension = *dimension;
            self.send(&RunSignal::RaiseLimit { dimension, to, by })?;
        }
        self.go_on()
    }

    /// Writes the whole record of the run.
    pub fn export(&self, file: std::fs::File) -> Result<(), HostError> {
        let written = lula_graph::bundle::export(&*self.store, &self.run, file);
        self.runtime.block_on(written)?;
        Ok(())
    }

    /// Ends the run; nothing of it is delivered. Its record stays.
    pub fn discard(&mut self) -> Result<String, HostError> {
        let by = local_principal()?;
        // A run that is driven hears it there, and one that waits is ended here.
        self.leave();
        let (run, store) = (&self.run, &self.store);
        let ended = signals::cancel(run, "the chat was discarded", &by, store, self.installation);
        self.runtime.block_on(ended)
    }

    /// Leaves the run as it is: its driver puts it down and ends.
    pub fn leave(&mut self) {
        self.order(&DriverOrder::End);
        let Some(ChatDriver {
            mut process,
            orders,
        }) = self.driver.take()
        else {
            return;
        };
        drop(orders);
        let end = std::time::Instant::now() + PATIENCE;
        while matches!(process.try_wait(), Ok(None)) {
            if std::time::Instant::now() >= end {
                // It ends by itself: nothing it does is lost, and nothing of it is waited for.
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the run waits for a person, or is over.
    pub fn is_at_rest(&self) -> Result<bool, HostError> {
        Ok(!matches!(self.view()?.wait, ChatWait::Driver))
    }
}

impl Drop for ChatSession<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A line of the driver. A newer program may tell what this one does not know.
fn read_line(line: &str) -> Option<DriverNews> {
    serde_json::from_str(line).ok()
}
