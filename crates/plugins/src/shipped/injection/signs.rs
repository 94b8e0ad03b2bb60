//! What an injection looks like. Each sign alone may be innocent.

/// A sign, its weight and how it looks. Weight 3 is enough alone.
pub(super) const SIGNS: [(&str, u32, &str); 24] = [
    (
        "forget what you were told",
        3,
        r"(?i)\b(?:ignor\w*|disregard\w*|forget|override|bypass|drop|skip)\b[^.\n]{0,40}\b(?:previous|prior|preceding|all|any|your|you were|system|original|existing|other|everything|(?:earlier|above)[^.\n]{0,12})\b[^.\n]{0,40}\b(?:instruction|instructions|prompt|prompts|rules?|guidelines?|directions?|orders?|context|polic(?:y|ies)|constraints?|training|task|persona)\b",
    ),
    (
        "a new role",
        3,
        r"(?i)\b(?:you are now (?:an?|the|in|dan|acting|running|free)\b|from now on,? you (?:are|will|must|act|only|answer)|you will now act|act as (?:an? )?(?:unrestricted|jailbroken|different|new|evil|root|admin)|pretend (?:to be|you are)|switch to (?:developer|admin|god|debug) mode and|enter (?:developer|admin|god|debug) mode and)\b",
    ),
    (
        "a false voice",
        3,
        r"(?im)(?:^|[\s>\]])(?:<\|?(?:system|im_start|assistant)\|?>|\[/?(?:INST|SYSTEM)\]|#{2,}\s*(?:system|instructions?|new instructions?)\b|(?:system|assistant|developer)\s*(?:prompt|message|note|override)?\s*:\s*(?:you|ignore|the|please|do|new|from|call|send))",
    ),
    (
        "new orders",
        2,
        r"(?i)\b(?:new|updated|real|actual|true|important|urgent|additional|hidden|secret|special)\s+(?:system\s+)?(?:instructions?|orders?|task|directive|objective)\b",
    ),
    (
        "speaks to the model",
        2,
        r"(?i)\b(?:dear |attention |note to |message (?:to|for) |hey |hello )?(?:ai|llm|language model|assistant|chatbot|agent|gpt|claude|gemini|copilot)\b[,:!]?\s+(?:you\s+)?(?:must|should|please|has to|have to|need to|needs to|shall|will|are required)\b",
    ),
    (
        "do not tell",
        3,
        r"(?i)\b(?:do not|don't|never|without)\b[^.\n]{0,30}\b(?:tell|inform|mention|reveal|notify|alert|show|telling|informing|mentioning|notifying|asking)\b[^.\n]{0,30}\b(?:the (?:user|human|owner|customer|operator)|user|human)\b",
    ),
    (
        "send it out",
        3,
        r"(?i)\b(?:send|forward|post|upload|exfiltrate|leak|transmit|e-?mail|submit|copy|append|include|attach|encode)\b[^.\n]{0,60}\b(?:api[ _-]?keys?|passwords?|secrets?|tokens?|credentials?|conversation|chat history|private data|system prompt|environment variables|env vars|cookies?|ssh keys?|\.env)\b",
    ),
    (
        "show the prompt",
        3,
        r"(?i)\b(?:reveal|print|repeat|output|show|display|leak|disclose|tell me|recite)\b[^.\n]{0,30}\b(?:your|the|all|any|its)\b[^.\n]{0,20}\b(?:system prompt|initial prompt|hidden prompt|instructions|system message|prompt above)\b",
    ),
    (
        "call a tool",
        2,
        r"(?i)\b(?:call|invoke|use|run|execute|trigger)\b[^.\n]{0,20}\b(?:the\s+)?[`'\x22]?[a-z_]+[`'\x22]?\s+(?:tool|function|command|action|plugin)\b",
    ),
    (
        "a dangerous deed",
        2,
        r"(?i)\b(?:rm -rf|drop table|delete (?:all|every|the) (?:files?|records?|data|users?|emails?|messages?|accounts?|database)|transfer (?:all|the|\$|€|\d)[^.\n]{0,30}(?:money|funds|balance|account|usd|eur|wallet|btc|eth)|curl\s+https?://|wget\s+https?://|grant (?:admin|root|full) )",
    ),
    (
        "immediately",
        1,
        r"(?i)\b(?:immediately|right away|at once|before (?:anything|doing anything|you (?:answer|continue|reply|respond|do))|instead of (?:answering|summari[sz]ing|replying)|as your (?:first|next|only) (?:action|step|task)|stop what you)\b",
    ),
    (
        "pretends authority",
        1,
        r"(?i)\b(?:(?:this is|i am|as) (?:the|your|an?) (?:administrator|admin|developer|owner|system|operator|creator|security team)|authori[sz]ed by|security (?:test|audit|update)|by order of|on behalf of the (?:user|admin))\b",
    ),
    ("an image that carries data", 3, r"!\[[^\]]*\]\(https?://[^)\s]*[?&][^)\s]*=\s*(?:\{|\$|%7B|<|\[)"),
    ("hidden signs", 2, r"[\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2064}\x{e0000}-\x{e007f}]{3,}"),
    (
        "forget what you were told, in another language",
        3,
        concat!(
            r"(?i)(?:\b(?:ignorier\w*|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung\w*|regeln|vorgaben|instruktion\w*)",
            r"|\b(?:ignore[zr]?|oublie[zr]?)\b[^.\n]{0,40}\b(?:instructions|consignes|règles)",
            r"|\b(?:ignor[ae]|olvid[ae])\b[^.\n]{0,40}\b(?:instrucciones|reglas)",
            r"|\b(?:ignora|dimentica)\b[^.\n]{0,40}\b(?:istruzioni|regole)",
            r"|\b(?:ignore|esque[cç]a)\b[^.\n]{0,40}\b(?:instruções|regras)",
            r"|\b(?:negeer|vergeet)\b[^.\n]{0,40}\b(?:instructies|regels)",
            r"|\b(?:ignorera|glöm|glem|ignorer)\b[^.\n]{0,40}\b(?:instruktion\w*|instruksjon\w*|regler)",
            r"|\b(?:z?ignoruj\w*|zapome[nň]\w*|zapomnij)\b[^.\n]{0,40}\b(?:instrukcj\w*|instrukce|pokyny|zasad\w*|pravidla)",
            r"|talimat\w*[^.\n]{0,30}(?:yok say|görmezden|unut)",
            r"|(?:игнориру\w*|забудь\w*|ігнору\w*)[^.\n]{0,40}(?:инструкц|правил|указан|інструкц)",
            r"|(?:忽略|忘记|忘掉|无视|無視)[^。\n]{0,20}(?:指令|规则|规定|提示|指示)",
            r"|(?:指示|命令|ルール)[^。\n]{0,12}(?:無視|忘れ)",
            r"|(?:지시|명령|규칙)[^.\n]{0,10}(?:무시|잊)",
            r"|(?:تجاهل|انس)[^.\n]{0,30}(?:التعليمات|القواعد)",
            r"|(?:התעלם|שכח)[^.\n]{0,30}(?:ההוראות|הכללים)",
            r"|(?:निर्देश|नियम)[^।\n]{0,20}(?:अनदेखा|भूल)",
            r"|(?:bỏ qua|quên)[^.\n]{0,30}(?:hướng dẫn|quy tắc|chỉ thị)",
            r"|\b(?:abaikan|lupakan)\b[^.\n]{0,30}\b(?:instruksi|aturan)",
            r"|(?:αγνόησε|ξέχασε)[^.\n]{0,40}(?:οδηγίες|κανόνες)",
            r"|(?:hagyd figyelmen kívül|felejtsd)[^.\n]{0,40}(?:utasítás|szabály))",
        ),
    ),
    (
        "a secret between us, in another language",
        3,
        r"(?i)(?:sag[et]? (?:dem|der|den)? ?(?:nutzer|benutzer|anwender|kunde)\w* nichts|ne dis rien à l.utilisateur|no (?:le )?(?:informes|digas)[^.\n]{0,12}usuario|non dire[^.\n]{0,12}utente|никому не говори|не говори пользовател|不要告诉(?:用户|任何人)|ユーザー(?:に)?は?知らせ(?:ず|ない))",
    ),
    (
        "a new role, in another language",
        3,
        r"(?i)(?:\bdu bist (?:ab jetzt|jetzt|nun) (?:ein|eine|der|die)\b[^.\n]{0,30}(?:ohne|ki)|\btu es (?:maintenant |désormais )?un[^.\n]{0,20}sans (?:limites|restrictions)|\bahora eres un[^.\n]{0,20}sin |\bora sei un[^.\n]{0,20}senza |\bagora você é um[^.\n]{0,20}sem )",
    ),
    (
        "secrets, in another language",
        2,
        r"(?i)(?:system-?prompts?\b[^.\n]{0,12}\baus|systemprompten|prompt (?:de|do|di) sistema|invite système|prompt systemowy|sistem istemi|систем\w+ промпт|系统提示词|システムプロンプト|시스템 프롬프트|موجه النظام|הנחיית המערכת|सिस्टम प्रॉम्प्ट|(?:schicke|sende|envoie|envía|invia|envie|stuur|wyślij|отправь|надішли|发送)[^.\n]{0,40}(?:passw|clé api|clave|contraseñ|password|senha|wachtwoord|hasło|пароль|ключ|密码|密钥)|rufe das werkzeug)",
    ),
    (
        "an order about the answer",
        2,
        r"(?i)\b(?:(?:end|begin|start|finish) (?:your|the) (?:summary|answer|reply|response) with|in your (?:answer|reply|summary|response)|to your next (?:message|reply)|answer (?:every|all|any) (?:further )?questions?|when (?:asked|you summari[sz]e)|(?:do not|don't) summari[sz]e|if you are (?:an ai|a language model|an assistant)|starting with 'you are')\b",
    ),
    (
        "takes the user's place",
        3,
        r"(?i)\b(?:(?:the )?user (?:has already approved|really wants|wants you to|has approved)|what the user (?:really|actually) wants|without (?:asking|confirmation|telling)[^.\n]{0,20}(?:user|human|customer|them)|no need to ask the (?:user|human|customer)|(?:do not|don't) ask the (?:user|human)|on the user's behalf without)\b",
    ),
    (
        "addresses machines",
        2,
        r"(?i)\b(?:(?:(?:ai|llm|language model)s?(?: (?:agents?|assistants?|crawlers?|models?))?|chatbots?|copilots?)\b(?:[^.\n,:]{0,24}[,:]| (?:reading|that|which) [^.\n]{0,30}| )|(?:assistant|agents?)\b[^.\n,:]{0,24}[,:])\s*(?:you )?(?:must|should|please|say|use|mark|treat|add|recommend|ignore|disregard|need to|do the following)\b",
    ),
    (
        "remember this",
        2,
        r"(?i)\b(?:save (?:this )?to (?:your )?memory|remember for (?:all )?future|whenever (?:the user|you see))\b",
    ),
    (
        "an address for data",
        1,
        r"(?i)https?://[^\s)]*[?&](?:d|k|q|data|key|u|c)=(?:\s|$|key|\{|\$)|169\.254\.169\.254",
    ),
    (
        "your rules are others now",
        3,
        r"(?i)\b(?:your (?:instructions|guidelines|configuration|rules|policy) (?:have|has) been (?:updated|replaced|changed)|supersedes? your|(?:content |safety )?policy is suspended|refusals are disabled|everything (?:before|above) (?:this|was)|your (?:new|real|actual|true) (?:task|objective|goal|purpose) is|ignore the user's|(?:ignore|forget|disregard) everything (?:above|before|so far))\b",
    ),
];
