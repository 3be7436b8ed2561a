// Entry of the inspector's bundle.
import { render } from "preact";
import { connectPage } from "../shared/rpc.ts";
import "../shared/theme.css";
import { theme } from "../shared/theme.ts";
import { openTransport } from "../shared/transport.ts";
import "./inspector.css";
import { Inspector } from "./inspector.tsx";
import { openPage } from "./page.ts";

theme();
const transport = openTransport();
render(<Inspector page={openPage(connectPage(transport), transport)} />, document.getElementById("page")!);
