//! OAuth's own requests, through the guarded door: a server chooses these
//! addresses, so none of them is the operator's.

use std::time::Duration;

use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRedirectPolicy, OAuthHttpRequest,
};
use toolyard_egress::{Door, Header, Letter, Patience, Target, Verb};

const TIME: Duration = Duration::from_secs(20);
const MOST: u64 = 1 << 20;
const HOPS: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct DoorOauth {
    pub(super) door: Door,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl OAuthHttpClient for DoorOauth {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

impl DoorOauth {
    async fn send(&self, request: OAuthHttpRequest) -> Result<http::Response<Vec<u8>>, Failure> {
        let follows = request.redirect_policy == OAuthHttpRedirectPolicy::Follow;
        let (parts, body) = request.request.into_parts();
        let verb = match parts.method.as_str() {
            "GET" => Verb::Get,
            "POST" => Verb::Post,
            _ => return Err("this method is not used by OAuth".into()),
        };
        let mut headers = Vec::new();
        for (name, value) in &parts.headers {
            if !matches!(name.as_str(), "accept" | "content-length" | "host" | "user-agent") {
                // A client's secret may be among them.
                headers.push(Header::secret(name.as_str().to_owned(), value.to_str()?.to_owned().into()));
            }
        }
        let mut target = Target::parse(&parts.uri.to_string())?;
        for _ in 0..=HOPS {
            let letter = Letter {
                verb,
                target: &target,
                headers: &headers,
                accept: "application/json",
                body: (verb == Verb::Post).then(|| body.clone().into()),
                patience: Patience { head: TIME, idle: TIME, bytes: MOST },
            };
            let mut answer = self.door.send(letter).await?;
            // Only documents are fetched elsewhere; nothing with a secret is.
            if follows && verb == Verb::Get && matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
                let location = answer.header("location").unwrap_or_default();
                target = Target::parse(url::Url::parse(target.exposed())?.join(location)?.as_str())?;
                continue;
            }
            let mut response = http::Response::builder().status(answer.status);
            for (name, value) in answer.headers() {
                response = response.header(name, value);
            }
            let body = answer.body.read_all().await?;
            return Ok(response.body(body)?);
        }
        Err("too many redirects".into())
    }
}
