//! What an order is, and what a change of stock decides. No I/O, no JSON, no SQL.
//!
//! Promises that a value of these types is valid: each is parsed once, at the edge. Does not promise that a SKU exists
//! or that stock is left.

mod command;
mod key;
mod quantity;
mod sku;

pub use command::{Before, Change, Command, Decision, Kind, Lines, NoLines, Refusal};
pub use key::{BadKey, IdempotencyKey, Keyed, RequestHash};
pub use quantity::{BadQuantity, OnHand, Quantity};
pub use sku::{BadSku, Sku};
