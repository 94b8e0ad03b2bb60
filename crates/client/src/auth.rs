//! Who the client is to the gateway.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use secrecy::SecretString;
use toolyard_egress::Header;

use crate::error::ClientError;

type Tokens = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// A key, asked for its headers before every request. Its `Debug` shows no key.
#[derive(Clone)]
pub struct Auth {
    who: Who,
}

#[derive(Clone)]
enum Who {
    Backend(SecretString),
    User { public: String, token: Token },
    Nobody,
}

#[derive(Clone)]
enum Token {
    Fixed(SecretString),
    Fresh(Tokens),
}

impl Auth {
    /// A backend with a secret key. It sees all of its tenant.
    pub fn secret_key(key: impl Into<String>) -> Self {
        Self { who: Who::Backend(key.into().into()) }
    }

    /// A user: a public key, and a token that says who it is.
    pub fn user(public_key: impl Into<String>, token: impl Into<String>) -> Self {
        let token = Token::Fixed(token.into().into());
        Self { who: Who::User { public: public_key.into(), token } }
    }

    /// A user whose token is asked for before every request, so that it may
    /// be renewed while a stream lasts.
    pub fn user_with<F, R>(public_key: impl Into<String>, tokens: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, String>> + Send + 'static,
    {
        let tokens: Tokens = Arc::new(move || Box::pin(tokens()));
        Self { who: Who::User { public: public_key.into(), token: Token::Fresh(tokens) } }
    }

    /// No key: for a gateway with `auth = "off"`.
    pub fn none() -> Self {
        Self { who: Who::Nobody }
    }

    /// A backend acts for others: it must say who speaks.
    pub fn is_backend(&self) -> bool {
        matches!(self.who, Who::Backend(_) | Who::Nobody)
    }

    pub(crate) async fn headers(&self) -> Result<Vec<Header>, ClientError> {
        match &self.who {
            Who::Nobody => Ok(Vec::new()),
            Who::Backend(key) => Ok(vec![Header::secret("x-secret-key", key.clone())]),
            Who::User { public, token } => {
                let token = match token {
                    Token::Fixed(token) => token.clone(),
                    Token::Fresh(fresh) => fresh()
                        .await
                        .map_err(|why| ClientError::settings(format!("there is no token: {why}")))?
                        .into(),
                };
                Ok(vec![Header::plain("x-public-key", public.clone()), Header::bearer(&token)])
            }
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.who {
            Who::Backend(_) => "Auth(secret key)",
            Who::User { .. } => "Auth(user)",
            Who::Nobody => "Auth(none)",
        })
    }
}
