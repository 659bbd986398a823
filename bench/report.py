"""Tables, JSON and plots of what run.py measured."""
import json
import statistics


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def best_peer(row):
    """The peer with the smallest median, or None."""
    peers = {name: spread(times)["median"] for name, times in row["times_ms"].items() if name != "tenon"}
    return min(peers, key=peers.get) if peers else None


def summarise(row, machine, how):
    """Adds to a row: medians, ratios to each peer (round by round) with their spread, and what the machine allows."""
    times = row["times_ms"]
    row["median_ms"] = {name: spread(x)["median"] for name, x in times.items()}
    row["ratios"] = {name: spread([a / b for a, b in zip(times["tenon"], x)]) for name, x in times.items() if name != "tenon"}
    row["best_peer"] = best_peer(row)
    compute = machine.get(how.limit, 0) / how.divisor or machine["fma_gflops"]
    bandwidth = machine["read_huge_gbps" if row["pages"] == "huge" else "read_4k_gbps"]
    limits = {"arithmetic": row["flops"] / compute * 1e-6, "memory": row["bytes"] / bandwidth * 1e-6}
    row["limit_ms"] = limits
    row["share_of_limit"] = max(limits.values()) / row["median_ms"]["tenon"]
    return row


def line(row):
    peers = "  ".join(f"{name} {row['median_ms'][name]:.1f}" for name in row["ratios"])
    text = f"{row['cell']:34} {row['threads']}  tenon {row['median_ms']['tenon']:8.2f} ms  {peers}"
    if row["best_peer"]:
        ratio = row["ratios"][row["best_peer"]]
        text += f"  ratio {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f}), asked {row['figure']}"
    return text + f"  {row['share_of_limit']:.0%} of the machine's limit"


def markdown(result):
    """Both tables, as docs have them."""
    out = ["| cell | threads | Tenon ms | best peer ms | ratio (spread) | asked | machine's limit ms: arithmetic, memory | share |",
           "|---|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        best = row["best_peer"]
        ratio = row["ratios"].get(best)
        out.append(
            f"| {row['cell']} | {row['threads']} | {row['median_ms']['tenon']:.1f} | "
            + (f"{best} {row['median_ms'][best]:.1f} | {ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})" if best else " | ")
            + f" | {row['figure']} | {row['limit_ms']['arithmetic']:.1f}, {row['limit_ms']['memory']:.1f} | {row['share_of_limit']:.0%} |")
    out += ["", "| cell | compile s | load s: Tenon | peers | peak memory MB: Tenon | peers |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        if row["threads"] == min(r["threads"] for r in result["rows"] if r["cell"] == row["cell"]):
            def of_peers(key, scale, digits):
                return ", ".join(f"{n} {x * scale:.{digits}f}" for n, x in row[key].items() if n != "tenon")
            out.append(f"| {row['cell']} | {row['compile_s']:.1f} | {row['load_s']['tenon']:.3f} | {of_peers('load_s', 1, 2)} | "
                       f"{row['rss_bytes']['tenon'] / 1e6:.0f} | {of_peers('rss_bytes', 1e-6, 0)} |")
    return "\n".join(out) + "\n"


def plot(result, path):
    """Bars of the ratios beside the figures asked for, and a roofline; returns why there is none."""
    try:
        import matplotlib
    except ImportError:
        return "no plot: matplotlib is not installed"
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    rows = [row for row in result["rows"] if row["best_peer"]]
    figure, (bars, roof) = plt.subplots(1, 2, figsize=(18, 2 + 0.22 * max(len(rows), 12)))
    places = range(len(rows))
    ratios = [row["ratios"][row["best_peer"]] for row in rows]
    bars.barh(places, [r["median"] for r in ratios], color=["C0" if row["threads"] == 1 else "C1" for row in rows],
              xerr=[[r["median"] - r["min"] for r in ratios], [r["max"] - r["median"] for r in ratios]])
    bars.plot([row["figure"] for row in rows], places, "k|", markersize=12, label="asked")
    bars.axvline(1, color="grey", linewidth=0.8)
    bars.set_yticks(places, [f"{row['cell']} {row['threads']}t" for row in rows], fontsize=7)
    bars.invert_yaxis()
    bars.set_xlabel("Tenon ÷ best peer, time; smaller is faster")
    bars.legend()
    draw_roofline(roof, result)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    return ""


def draw_roofline(roof, result):
    threads = min(result["machine"], key=int)
    machine = result["machine"][threads]
    bandwidth = machine["read_huge_gbps"]
    intensities = [2 ** (i / 4) for i in range(-8, 49)]
    for key, divisor, label in (("fma_gflops", 1, "f32 multiply-adds"), ("amx_bf16_gflops", 6, "f32 by six products of bf16"),
                                ("amx_bf16_gflops", 1, "bf16 tiles"), ("amx_int8_gops", 1, "int8 tiles")):
        if machine[key]:
            roof.loglog(intensities, [min(machine[key] / divisor, x * bandwidth) for x in intensities], label=label, linewidth=1)
    for row in result["rows"]:
        if row["threads"] == int(threads):
            x, y = row["flops"] / row["bytes"], row["flops"] / row["median_ms"]["tenon"] * 1e-6
            roof.plot([x], [y], "k.")
            roof.annotate(row["cell"], (x, y), fontsize=6)
    roof.set_xlabel("operations per byte")
    roof.set_ylabel(f"GFLOP/s, {threads} thread(s)")
    roof.legend()


def write(result, folder):
    """result.json, result.md and result.png in `folder`."""
    (folder / "result.json").write_text(json.dumps(result, indent=1))
    (folder / "result.md").write_text(markdown(result))
    return plot(result, folder / "result.png")
