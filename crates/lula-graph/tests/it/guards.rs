//! What cannot happen: incomplete tables, runs without end, the same thing for ever.

use std::sync::Arc;

use lula_graph::{
    EffectRequest, EngineError, Graph, GraphEngine, LoopGuard, NodeContext, NodeExit,
    NodeVisitFuture, RestReason, RunEndReport, RunStart, TransitionTable, async_trait, labels,
};
use lula_protocol::RunExit;
use lula_protocol::event::RunEnding;
use proptest::prelude::*;
use rand_core::Rng;

use crate::delivery::{HandClock, engine, options, sqlite};
use crate::single::ObligingWorld;

labels! { enum Room { Hall = "hall", Cellar = "cellar", Attic = "attic" } }
labels! { enum Door { Left = "left", Right = "right", Out = "out" } }

type Wiring = fn(TransitionTable<Maze>) -> TransitionTable<Maze>;

/// Wanders through doors at random until it finds the one that leads out.
struct Maze {
    wiring: Wiring,
    /// One door in so many leads out.
    odds: u32,
    guard: Option<LoopGuard>,
}

const ALL: &[Door] = &[Door::Left, Door::Right, Door::Out];

fn whole(table: TransitionTable<Maze>) -> TransitionTable<Maze> {
    let both: &[Room] = &[Room::Cellar, Room::Attic];
    table
        .on(Room::Hall, Door::Left, Room::Cellar)
        .choose(Room::Hall, Door::Right, both, |steps| {
            if steps % 2 == 0 {
                Room::Cellar
            } else {
                Room::Attic
            }
        })
        .done(Room::Hall, Door::Out)
        .on(Room::Cellar, Door::Left, Room::Hall)
        .on(Room::Cellar, Door::Right, Room::Cellar)
        .done(Room::Cellar, Door::Out)
        .on(Room::Attic, Door::Left, Room::Hall)
        .on(Room::Attic, Door::Right, Room::Attic)
        .done(Room::Attic, Door::Out)
}

#[async_trait]
impl Graph for Maze {
    type Node = Room;
    type Outcome = Door;
    type Input = ();
    type State = u32;
    type Event = u32;
    const NAME: &'static str = "maze";
    const VERSION: u32 = 1;

    fn outcomes(&self, _: Room) -> &'static [Door] {
        ALL
    }
    fn table(&self) -> TransitionTable<Self> {
        (self.wiring)(TransitionTable::starting_at(Room::Hall))
    }
    fn begin(&self, (): ()) -> u32 {
        0
    }
    fn apply(&self, steps: &mut u32, step: &u32) {
        *steps += step;
    }
    async fn visit(
        &self,
        _: Room,
        steps: &u32,
        ctx: &mut NodeContext<'_>,
    ) -> NodeVisitFuture<Self> {
        let mut dice = ctx.rng();
        if self.odds > 0 && dice.next_u32().is_multiple_of(self.odds) {
            return Ok(NodeExit::by(Door::Out));
        }
        // Without randomness it looks at the same thing in the same way every time.
        let _: String = ctx
            .effect(EffectRequest::read("look", &(self.odds * steps)))
            .await?;
        let door = if dice.next_u32().is_multiple_of(2) || self.odds == 0 {
            Door::Left
        } else {
            Door::Right
        };
        Ok(NodeExit::by(door).with(u32::from(self.odds > 0)))
    }
    fn report(&self, steps: &u32) -> RunEndReport {
        RunEndReport {
            exit: RunExit::Verified,
            summary: format!("out after {steps} steps"),
        }
    }
    fn loop_guard(&self) -> Option<LoopGuard> {
        self.guard
    }
}

fn refusal(wiring: Wiring) -> String {
    let directory = tempfile::tempdir().unwrap();
    let maze = Maze {
        wiring,
        odds: 1,
        guard: None,
    };
    match GraphEngine::new(
        maze,
        sqlite(directory.path()),
        Arc::new(ObligingWorld),
        options(),
    ) {
        Err(error @ EngineError::Table { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the table was accepted"),
    }
}

#[test]
fn a_table_that_is_not_closed_is_refused_with_the_place() {
    let missing = refusal(|table| table.done(Room::Hall, Door::Left));
    assert!(missing.contains("hall can end with right"), "{missing}");
    let doubled = refusal(|table| whole(table).done(Room::Hall, Door::Left));
    assert!(
        doubled.contains("twice where hall goes after left"),
        "{doubled}"
    );
    let unreachable = refusal(|table| {
        let mut table = table;
        for room in [Room::Hall, Room::Cellar, Room::Attic] {
            for door in ALL {
                table = table.done(room, *door);
            }
        }
        table
    });
    assert!(
        unreachable.contains("no way leads to cellar"),
        "{unreachable}"
    );
    let endless = refusal(|table| {
        let mut table = table;
        for room in [Room::Hall, Room::Cellar, Room::Attic] {
            table = table.on(room, Door::Left, Room::Hall);
            table = table.on(room, Door::Right, Room::Cellar);
            table = table.on(room, Door::Out, Room::Attic);
        }
        table
    });
    assert!(
        endless.contains("no way leads from hall to the end"),
        "{endless}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_run_ends_within_its_visits(seed: [u8; 32], odds in 1_u32..40, max_visits in 1_u64..30) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let directory = tempfile::tempdir().unwrap();
            let clock = HandClock::new();
            let maze = Maze { wiring: whole, odds, guard: None };
            let engine = engine(maze, sqlite(directory.path()), Arc::new(ObligingWorld), &clock);
            let start = RunStart { seed: Some(seed), max_visits, ..RunStart::default() };
            let (run, rested) = engine.run(&(), &start).await.unwrap();
            let RestReason::Done(ended) = rested else { panic!("{rested:?}") };
            let progress = engine.show(&run, None).await.unwrap().progress;
            assert!(progress.total_visits <= max_visits);
            match ended.ending {
                RunEnding::Completed => {}
                RunEnding::Halted => assert_eq!(progress.total_visits, max_visits),
                RunEnding::Cancelled => panic!("nobody cancelled"),
            }
            assert_eq!(engine.replay(&run).await.unwrap().differences, []);
        });
    }
}

#[tokio::test]
async fn a_run_that_goes_in_circles_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let clock = HandClock::new();
    let maze = Maze {
        wiring: whole,
        odds: 0,
        guard: Some(LoopGuard::default()),
    };
    let engine = engine(
        maze,
        sqlite(directory.path()),
        Arc::new(ObligingWorld),
        &clock,
    );
    let (run, rested) = engine.run(&(), &RunStart::default()).await.unwrap();
    let RestReason::Done(ended) = rested else {
        panic!("{rested:?}")
    };
    assert_eq!(ended.ending, RunEnding::Halted);
    assert!(
        ended.summary.contains("again and again"),
        "{}",
        ended.summary
    );
    let progress = engine.show(&run, None).await.unwrap().progress;
    assert_eq!(
        (progress.strikes, progress.total_visits),
        (2, 6),
        "three times each room"
    );
    assert_eq!(engine.replay(&run).await.unwrap().differences, []);
}
