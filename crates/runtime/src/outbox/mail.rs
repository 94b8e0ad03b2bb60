//! A parcel that is a letter: `{to, subject, text}`.

use toolyard_egress::Mail;
use toolyard_store::outbox::Parcel;

use super::{ATTEMPT, Delivery, Went};

/// The kind of parcel that letters are.
pub(super) const PARCEL: &str = "email";

pub(super) async fn deliver(delivery: &Delivery, parcel: &Parcel) -> Went {
    let text = |name: &str| parcel.payload[name].as_str().unwrap_or_default();
    let mail = Mail { id: &parcel.id, to: text("to"), subject: text("subject"), text: text("text") };
    let Some(mailer) = &delivery.mailer else {
        return Went::Dropped { why: Some("this gateway has no mail server (smtp.host)".to_owned()) };
    };
    match mailer.send(mail, ATTEMPT).await {
        Ok(()) => Went::Delivered { status: None },
        Err(e) if e.is_final() => Went::Dropped { why: Some(e.to_string()) },
        Err(e) => Went::Failed { status: None, why: e.to_string() },
    }
}
