//! Bytes relayed as they are.
//!
//! A direction begins without a buffer of its own: a thousand idle connections hold none. One that moves
//! much gets a pipe, through which the kernel moves the bytes without copying them here (`splice(2)`).

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::Shutdown;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::meter::{Direction, Meter};
use crate::record::ConnectionSide;

/// Bytes of a direction after which it gets a pipe.
const WORTH_A_PIPE: u64 = 256 * 1024;
/// What a pipe should hold. The kernel gives less to a user who has many.
const PIPE_SIZE: usize = 1 << 20;
/// Bytes read at once without a pipe.
const SCRATCH: usize = 64 * 1024;

thread_local! {
    /// Shared by all directions of the engine's thread: nothing stays in it across a wait.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// A relay that ended before both sides had, and the side whose socket said so.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) side: ConnectionSide,
    pub(super) error: io::Error,
}

/// Relays until both sides have ended.
pub(super) async fn relay(
    inside: &TcpStream,
    outside: &TcpStream,
    meter: &Meter,
) -> Result<(), Broken> {
    tokio::try_join!(
        pump(inside, outside, meter, Direction::Up),
        pump(outside, inside, meter, Direction::Down),
    )?;
    Ok(())
}

impl Direction {
    /// An error of the side that bytes come from.
    fn source(self, error: io::Error) -> Broken {
        let side = match self {
            Self::Up => ConnectionSide::Inside,
            Self::Down => ConnectionSide::Outside,
        };
        Broken { side, error }
    }

    /// An error of the side that they go to.
    fn sink(self, error: io::Error) -> Broken {
        let side = match self {
            Self::Up => ConnectionSide::Outside,
            Self::Down => ConnectionSide::Inside,
        };
        Broken { side, error }
    }
}

async fn pump(
    from: &TcpStream,
    to: &TcpStream,
    meter: &Meter,
    direction: Direction,
) -> Result<(), Broken> {
    let mut moved = 0;
    let ended = loop {
        if moved >= WORTH_A_PIPE {
            break false;
        }
        match copy_some(from, to, meter, direction).await? {
            0 => break true,
            count => moved += count as u64,
        }
    };
    if !ended {
        match pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK) {
            Ok(pipe) => {
                let _ = fcntl_setpipe_size(&pipe.1, PIPE_SIZE);
                splice_rest(from, to, &pipe, meter, direction).await?;
            }
            // No descriptors left: slower, not broken.
            Err(_) => while copy_some(from, to, meter, direction).await? > 0 {},
        }
    }
    // The other direction may still have something to say.
    let _ = rustix::net::shutdown(to.as_fd(), Shutdown::Write);
    Ok(())
}

/// Moves what one read gives; 0 at the end.
async fn copy_some(
    from: &TcpStream,
    to: &TcpStream,
    meter: &Meter,
    direction: Direction,
) -> Result<usize, Broken> {
    enum Step {
        Again,
        Moved(usize),
        Left(usize, Vec<u8>),
    }
    loop {
        let source = |error| direction.source(error);
        from.readable().await.map_err(source)?;
        let step = BUFFER.with_borrow_mut(|buffer| {
            let count = match from.try_read(buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Step::Again),
                Err(error) => return Err(source(error)),
            };
            meter.add(direction, count).map_err(source)?;
            match to.try_write(&buffer[..count]) {
                Ok(written) if written == count => Ok(Step::Moved(count)),
                Ok(written) => Ok(Step::Left(count, buffer[written..count].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    Ok(Step::Left(count, buffer[..count].to_vec()))
                }
                Err(error) => Err(direction.sink(error)),
            }
        })?;
        match step {
            Step::Again => {}
            Step::Moved(count) => return Ok(count),
            Step::Left(count, left) => {
                let written = write_all(to, &left).await;
                return written
                    .map(|()| count)
                    .map_err(|error| direction.sink(error));
            }
        }
    }
}

pub(super) async fn write_all(to: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        to.writable().await?;
        match to.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn splice_rest(
    from: &TcpStream,
    to: &TcpStream,
    (out, into): &(OwnedFd, OwnedFd),
    meter: &Meter,
    direction: Direction,
) -> Result<(), Broken> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    loop {
        let count = from
            .async_io(Interest::READABLE, || {
                Ok(splice(from.as_fd(), None, into, None, PIPE_SIZE, flags)?)
            })
            .await
            .map_err(|error| direction.source(error))?;
        if count == 0 {
            return Ok(());
        }
        meter
            .add(direction, count)
            .map_err(|error| direction.source(error))?;
        let mut left = count;
        while left > 0 {
            left -= to
                .async_io(Interest::WRITABLE, || {
                    Ok(splice(out, None, to.as_fd(), None, left, flags)?)
                })
                .await
                .map_err(|error| direction.sink(error))?;
        }
    }
}
