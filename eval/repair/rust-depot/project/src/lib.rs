//! A small warehouse: stock, orders, routes and labels.

pub mod label;
pub mod order;
pub mod route;
pub mod stock;
