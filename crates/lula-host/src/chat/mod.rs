//! A chat on this machine: two processes. The one at the person's terminal holds no model keys: it sends
//! what the person says to the run, answers questions in their name, and may read the repository. The
//! other drives the run, locked out of the repository like every driver.
//!
//! What is said goes through the store, as signals: it is in the log before anything comes of it. Between
//! the two processes go only things of the moment (`news`): words as they come, what is being done, and
//! that a step is to stop. When the person's process dies, the driver puts the run down after its step;
//! when the driver dies, another one goes on.

mod news;
mod serve;
mod session;
mod waits;

pub use news::{DriverNews, DriverOrder};
pub use serve::serve;
pub use session::{ChatSession, Heard};
pub use waits::{ChatView, ChatWait};
