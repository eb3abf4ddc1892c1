//! The engine as its users see it: runs that survive, wait, are replayed, forked and exported.

mod bundle;
mod crash;
mod delivery;
mod faults;
mod guards;
mod kill;
mod people;
mod replay;
mod single;
