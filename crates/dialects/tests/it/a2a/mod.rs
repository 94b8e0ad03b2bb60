//! A2A as bytes: what requests mean, what a run reads like, who sees what.

mod cards;
mod notices;
mod peers;
mod requests;
mod streams;
