//! What leads out of the gateway: the guarded door, secrets, the mail server.

use std::sync::Arc;

use secrecy::SecretString;
use toolyard_egress::{Door, MailServer, MailTls, Mailer, Opened};
use toolyard_runtime::{Delivery, Retry, Sealer};

use super::ServeError;
use crate::config::{Config, Smtp, SmtpTls};

/// The door for every address that is not the operator's.
pub(super) fn guarded(config: &Config) -> Result<Door, ServeError> {
    let opened = Opened::parse(&config.allow_private_network).map_err(ServeError::Door)?;
    Door::guarded(opened).map_err(|e| ServeError::Door(e.causes()))
}

/// By which ways the outbox is emptied.
pub(super) fn delivery(config: &Config, door: Door, sealer: Arc<Sealer>) -> Result<Delivery, ServeError> {
    let mailer = config.smtp.host.as_ref().map(|host| mailer(host, &config.smtp)).transpose()?;
    Ok(Delivery { door, sealer, mailer, retry: Retry::default() })
}

fn mailer(host: &str, smtp: &Smtp) -> Result<Mailer, ServeError> {
    let password = SecretString::from(smtp.password.expose());
    let server = MailServer {
        host: host.to_owned(),
        port: smtp.port,
        tls: match smtp.tls {
            SmtpTls::Tls => MailTls::Tls,
            SmtpTls::Starttls => MailTls::StartTls,
            SmtpTls::None => MailTls::None,
        },
        user: smtp.user.clone().map(|user| (user, password)),
        from: smtp.from.clone().unwrap_or_default(),
    };
    Mailer::new(&server).map_err(|e| ServeError::Mail(e.to_string()))
}
