import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/views.css";
import "./styles/agents.css";
import { App } from "./shell/App.tsx";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
