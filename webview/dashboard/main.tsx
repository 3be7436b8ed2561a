// Entry of the dashboard's bundle.
import { render } from "preact";
import { connectPage } from "../shared/rpc.ts";
import "../shared/theme.css";
import { theme } from "../shared/theme.ts";
import { openTransport } from "../shared/transport.ts";
import "./dashboard.css";
import { Dashboard } from "./dashboard.tsx";
import { openPage } from "./page.ts";

theme();
const transport = openTransport();
render(<Dashboard page={openPage(connectPage(transport), transport)} />, document.getElementById("page")!);
