import { MonitorSmartphone, Quote, ShieldCheck, type LucideIcon } from "lucide-react";

interface Suggestion {
  icon: LucideIcon;
  title: string;
  about: string;
  say: string;
}

/** What the demo model can show without any key. Its commands are its language. */
const DEMO: Suggestion[] = [
  {
    icon: MonitorSmartphone,
    title: "Run a tool in this page",
    about: "The agent reads what you see. The tool runs here, not on the server.",
    say: 'call read_screen {"area":"top"}',
  },
  {
    icon: ShieldCheck,
    title: "Ask before it acts",
    about: "Writing a file needs your yes. You see the exact arguments first.",
    say: 'call write_file {"path":"hello.txt","text":"Hello from Toolyard"}',
  },
  {
    icon: Quote,
    title: "Answer with a source",
    about: "Citations are numbered and lead to where they come from.",
    say: "cite https://www.rfc-editor.org/rfc/rfc9110",
  },
];

export function Welcome({ agent, demo, onSay }: { agent: string; demo: boolean; onSay: (text: string, title: string) => void }) {
  return (
    <div className="welcome">
      <img src="/favicon.svg" width={52} height={52} alt="" />
      <h1>What should {agent} do?</h1>
      <p className="lead">
        {demo
          ? "No key is set, so the built-in demo model answers. These three show what a gateway does for you."
          : "Tools run where they belong: in this page, on the gateway, or in your own programs. Nothing risky happens without your yes."}
      </p>
      {demo && (
        <div className="prompts">
          {DEMO.map(({ icon: Icon, title, about, say }) => (
            <button key={title} type="button" className="prompt" onClick={() => onSay(say, title)}>
              <Icon size={22} aria-hidden />
              <b>{title}</b>
              <span>{about}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
