//! Letters by the operator's mail server. Only the operator names the server;
//! whoever writes a letter chooses the reader and the words.

use std::fmt;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};

/// How the way to the server is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTls {
    /// From the first byte (port 465).
    Tls,
    /// After the greeting, and never without (port 587).
    StartTls,
    /// Not at all: for a server on this machine.
    None,
}

/// Where letters are handed in.
#[derive(Debug, Clone)]
pub struct MailServer {
    pub host: String,
    /// Missing means the usual one.
    pub port: Option<u16>,
    pub tls: MailTls,
    pub user: Option<(String, SecretString)>,
    /// `Name <name@example.com>`
    pub from: String,
}

/// One letter.
#[derive(Debug, Clone, Copy)]
pub struct Mail<'a> {
    /// The same for every try: readers' programs show one letter.
    pub id: &'a str,
    pub to: &'a str,
    pub subject: &'a str,
    pub text: &'a str,
}

/// Why a letter was not taken. No variant shows the password or the letter.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("{0}")]
    Refused(&'static str),
    #[error("the mail server refused the letter ({code})")]
    Rejected { code: String, for_good: bool },
    #[error("the mail server cannot be reached")]
    Unreachable(#[source] lettre::transport::smtp::Error),
    #[error("the mail server did not answer within {after:?}")]
    Timeout { after: Duration },
}

impl MailError {
    /// Another try would end the same way.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Rejected { for_good, .. } => *for_good,
            Self::Unreachable(_) | Self::Timeout { .. } => false,
        }
    }
}

/// Hands letters in. Cheap to clone.
#[derive(Clone)]
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl fmt::Debug for Mailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailer")
    }
}

impl Mailer {
    pub fn new(server: &MailServer) -> Result<Self, MailError> {
        type Transport = AsyncSmtpTransport<Tokio1Executor>;
        let from: Mailbox =
            server.from.parse().map_err(|_| MailError::Refused("the sender is not a mail address"))?;
        let builder = match server.tls {
            MailTls::Tls => Transport::relay(&server.host).map_err(MailError::Unreachable)?,
            MailTls::StartTls => Transport::starttls_relay(&server.host).map_err(MailError::Unreachable)?,
            MailTls::None => Transport::builder_dangerous(&server.host),
        };
        let builder = match server.port {
            Some(port) => builder.port(port),
            None => builder,
        };
        let builder = match &server.user {
            Some((user, password)) => {
                builder.credentials(Credentials::new(user.clone(), password.expose_secret().to_owned()))
            }
            None => builder,
        };
        Ok(Self { transport: builder.build(), from })
    }

    /// Hands a letter in, within `total`.
    pub async fn send(&self, mail: Mail<'_>, total: Duration) -> Result<(), MailError> {
        let to: Address =
            mail.to.trim().parse().map_err(|_| MailError::Refused("the reader is not a mail address"))?;
        let domain = self.from.email.domain();
        let id: String = mail.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '.' }).collect();
        let letter = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .message_id(Some(format!("<{id}@{domain}>")))
            .subject(mail.subject.chars().filter(|c| !c.is_control()).collect::<String>())
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.to_owned())
            .map_err(|_| MailError::Refused("the letter cannot be written"))?;
        match tokio::time::timeout(total, self.transport.send(letter)).await {
            Err(_) => Err(MailError::Timeout { after: total }),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(match e.status() {
                Some(code) => MailError::Rejected { code: code.to_string(), for_good: e.is_permanent() },
                None => MailError::Unreachable(e),
            }),
        }
    }
}
