//! The binary against small real HTTP servers that lose replies, refuse and hang on purpose.

mod bounds;
mod mixed;
mod oversell;
mod shop;
mod tool;
