"""The vocabulary of the example library: topics, venues, places and names. Data only."""

from typing import NamedTuple


class Topic(NamedTuple):
    """A research topic, with the subjects, methods, measures and settings in its papers."""

    slug: str
    name: str
    field: int
    things: tuple[str, ...]
    methods: tuple[str, ...]
    measures: tuple[str, ...]
    settings: tuple[str, ...]


class Place(NamedTuple):
    """An invented town in a real country."""

    name: str
    country: str
    latitude: float
    longitude: float


class VenueName(NamedTuple):
    """A journal or conference. There is one per field, and two accept papers from all fields."""

    code: str
    name: str
    kind: str
    founded: int
    publisher: str | None


def words(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(word.strip() for word in text.split(","))


def topic(slug: str, name: str, field: int, *lists: str) -> Topic:
    """Build a topic from four comma-separated lists: things, methods, measures, settings."""
    things, methods, measures, settings = (words(text) for text in lists)
    return Topic(slug, name, field, things, methods, measures, settings)


# The fields; each topic below belongs to one of them.
FIELDS = (
    ("machine-learning", "Machine learning"),
    ("data-management", "Data management"),
    ("life-science", "Life science"),
    ("earth-science", "Earth science"),
    ("materials-physics", "Materials physics"),
    ("social-science", "Social science"),
)

TOPICS = (
    topic(
        "language-models",
        "language models",
        0,
        "large language models, subword vocabularies, attention layers, instruction datasets, "
        "dialogue agents, machine translations",
        "contrastive pre-training, low-rank adaptation, retrieval augmentation, self-consistency "
        "decoding, curriculum fine-tuning",
        "perplexity, factual accuracy, calibration, sample efficiency",
        "low-resource languages, long documents, clinical notes, code review",
    ),
    topic(
        "computer-vision",
        "computer vision",
        0,
        "object detectors, image segmentations, video transformers, depth maps, visual features, synthetic scenes",
        "masked image modelling, test-time augmentation, neural radiance rendering, "
        "self-supervised distillation, active labelling",
        "detection recall, robustness, inference latency, mean average precision",
        "aerial imagery, crowded streets, low light, medical scans",
    ),
    topic(
        "reinforcement-learning",
        "reinforcement learning",
        0,
        "reward functions, exploration policies, world models, multi-agent games, "
        "robot controllers, offline trajectories",
        "proximal policy optimisation, hindsight replay, model-based planning, inverse reward "
        "design, curiosity-driven search",
        "cumulative reward, regret, sample complexity, policy stability",
        "warehouse robots, sparse rewards, partially observed environments, traffic control",
    ),
    topic(
        "graph-databases",
        "graph databases",
        1,
        "property graphs, path queries, knowledge graphs, adjacency indexes, graph schemas, versioned graphs",
        "worst-case optimal joining, bidirectional traversal, columnar adjacency storage, "
        "snapshot isolation, schema inference",
        "query latency, traversal throughput, storage overhead, planning time",
        "object storage, data lakes, fraud detection, supply chains",
    ),
    topic(
        "information-retrieval",
        "information retrieval",
        1,
        "inverted indexes, dense retrievers, query expansions, relevance judgements, "
        "hybrid rankings, citation recommendations",
        "reciprocal rank fusion, learned sparse retrieval, late interaction, pseudo-relevance "
        "feedback, vector quantisation",
        "recall at ten, ranking quality, index size, tail latency",
        "scientific literature, enterprise search, conversational search, patent archives",
    ),
    topic(
        "distributed-transactions",
        "distributed transactions",
        1,
        "commit protocols, replicated logs, optimistic transactions, object stores, "
        "write-ahead logs, branching datasets",
        "compare-and-swap publication, deterministic ordering, lease-based fencing, "
        "multi-version validation, quorum reading",
        "commit latency, abort rate, recovery time, availability",
        "wide-area networks, cloud object storage, skewed workloads, serverless functions",
    ),
    topic(
        "genomics",
        "genomics",
        2,
        "genome assemblies, regulatory variants, single-cell transcriptomes, pangenome graphs, "
        "gene expression profiles, microbial communities",
        "long-read sequencing, variant calling, genome-wide association, spatial barcoding, metagenomic binning",
        "assembly contiguity, heritability, detection power, false discovery rate",
        "crop species, rare diseases, ancient samples, gut microbiomes",
    ),
    topic(
        "protein-structure",
        "protein structure",
        2,
        "protein folds, binding pockets, membrane proteins, antibody loops, enzyme variants, protein complexes",
        "cryo-electron microscopy, structure prediction, molecular dynamics, directed evolution, hydrogen exchange",
        "binding affinity, thermal stability, structural resolution, catalytic rate",
        "drug discovery, extreme temperatures, viral infection, disordered regions",
    ),
    topic(
        "epidemiology",
        "epidemiology",
        2,
        "infection waves, contact networks, vaccination campaigns, surveillance systems, "
        "transmission chains, hospital admissions",
        "compartmental modelling, wastewater sampling, Bayesian nowcasting, contact tracing, cohort matching",
        "reproduction number, incidence, vaccine effectiveness, reporting delay",
        "dense cities, school outbreaks, rural clinics, seasonal influenza",
    ),
    topic(
        "climate-modelling",
        "climate modelling",
        3,
        "regional climate projections, cloud feedbacks, carbon budgets, heat waves, precipitation extremes, ice sheets",
        "ensemble downscaling, bias correction, data assimilation, stochastic parametrisation, event attribution",
        "climate sensitivity, forecast skill, warming rate, model bias",
        "the Arctic, monsoon regions, semi-arid basins, coastal cities",
    ),
    topic(
        "hydrology",
        "hydrology",
        3,
        "river floods, groundwater tables, snow reservoirs, sediment flows, urban catchments, drought indices",
        "isotope tracing, distributed runoff modelling, satellite altimetry, "
        "ensemble flood forecasting, managed recharge",
        "peak discharge, infiltration rate, lead time, water quality",
        "alpine valleys, karst aquifers, irrigated plains, ungauged basins",
    ),
    topic(
        "remote-sensing",
        "remote sensing",
        3,
        "radar time series, hyperspectral images, land cover maps, forest inventories, "
        "soil moisture products, methane plumes",
        "interferometric stacking, spectral unmixing, lidar fusion, change detection, atmospheric correction",
        "classification accuracy, revisit time, spatial resolution, retrieval error",
        "tropical forests, permafrost, smallholder farms, volcanic islands",
    ),
    topic(
        "battery-materials",
        "battery materials",
        4,
        "solid electrolytes, lithium anodes, sodium cathodes, electrode coatings, grain boundaries, recycled cells",
        "impedance spectroscopy, atomic layer deposition, operando diffraction, "
        "high-throughput screening, dry electrode processing",
        "ionic conductivity, cycle life, energy density, coulombic efficiency",
        "fast charging, sub-zero temperatures, grid storage, electric aircraft",
    ),
    topic(
        "photovoltaics",
        "photovoltaics",
        4,
        "perovskite films, tandem solar cells, passivation layers, transparent contacts, "
        "bifacial modules, organic absorbers",
        "vapour deposition, solvent engineering, photoluminescence mapping, defect passivation, accelerated ageing",
        "conversion efficiency, carrier lifetime, degradation rate, open-circuit voltage",
        "humid climates, flexible substrates, building facades, low irradiance",
    ),
    topic(
        "quantum-computing",
        "quantum computing",
        4,
        "superconducting qubits, surface codes, trapped ions, variational circuits, quantum memories, magic states",
        "error mitigation, dynamical decoupling, randomised benchmarking, circuit compilation, lattice surgery",
        "gate fidelity, coherence time, logical error rate, circuit depth",
        "noisy devices, chemistry simulation, modular processors, optimisation problems",
    ),
    topic(
        "behavioural-economics",
        "behavioural economics",
        5,
        "default options, risk preferences, saving decisions, social norms, information nudges, consumer choices",
        "field experimentation, conjoint analysis, incentive-compatible elicitation, eye tracking, "
        "structural estimation",
        "willingness to pay, take-up, loss aversion, present bias",
        "pension plans, energy tariffs, online markets, small firms",
    ),
    topic(
        "learning-sciences",
        "learning sciences",
        5,
        "worked examples, tutoring systems, classroom discussions, formative assessments, "
        "study habits, learning analytics",
        "retrieval practice, spaced repetition, peer instruction, knowledge tracing, design-based research",
        "learning gain, retention, engagement, transfer",
        "introductory physics, large lectures, primary schools, online courses",
    ),
    topic(
        "digital-libraries",
        "digital libraries",
        5,
        "citation networks, research datasets, author identities, open repositories, metadata standards, peer reviews",
        "record linkage, bibliographic coupling, provenance tracking, text mining, persistent identification",
        "metadata completeness, citation impact, reuse, disambiguation accuracy",
        "open access, interdisciplinary fields, national archives, preprint servers",
    ),
)

VENUES = (
    VenueName("clearn", "Conference on Learning Machines", "conference", 1987, None),
    VenueName("tds", "Transactions on Data Systems", "journal", 1983, "Ostrava Scholarly"),
    VenueName("cell-forum", "Forum of Molecular Life", "journal", 1991, "Harbour Press"),
    VenueName("earthsys", "Earth System Letters", "journal", 1995, "Harbour Press"),
    VenueName("matphys", "Symposium on Functional Materials", "conference", 2002, None),
    VenueName("socsci", "Review of Experimental Society", "journal", 2008, "Ostrava Scholarly"),
    VenueName("proc-sci", "Proceedings of Open Science", "journal", 1980, "Open Science League"),
    VenueName("wip", "Workshop on Work in Progress", "workshop", 2015, None),
)

PLACES = tuple(
    Place(name, country, float(latitude), float(longitude))
    for name, country, latitude, longitude in (
        row.split(":")
        for row in words(
            "Norrvik:SE:59.33:17.91,Aldermoor:GB:52.21:-1.48,Kestrel Bay:CA:44.71:-63.58,"
            "Santa Livia:BR:-22.95:-47.02,Hohenfeld:DE:48.41:9.95,Tamarack:US:44.98:-89.61,"
            "Miyahara:JP:34.68:135.21,Port Ellory:AU:-34.92:138.57,Valdeluna:ES:40.61:-3.02,"
            "Oudewater:NL:52.03:4.87,Kisumwe:KE:-0.09:34.77,Montclar:FR:44.36:6.33,"
            "Zelena Vale:CZ:49.81:15.47,Ravensholm:DK:55.91:12.49,Silvaplana:CH:46.46:9.79,"
            "Haeundo:KR:35.16:129.17,Ibadu:NG:7.38:3.91,Pune Heights:IN:18.53:73.85,"
            "Lago Verde:CL:-44.23:-71.83,Tel Carmi:IL:32.79:34.99,Westmark:NZ:-43.53:172.62,"
            "Linhai Lake:CN:30.25:120.17,Kalevala:FI:62.24:25.75,Corvara Alta:IT:46.55:11.87"
        )
    )
)

INSTITUTIONS = (
    ("University of {}", "university"),
    ("{} Institute of Technology", "university"),
    ("{} Research Laboratories", "company"),
    ("{} Academy of Sciences", "institute"),
    ("National Observatory of {}", "government"),
    ("{} Medical School", "university"),
    ("{} Centre for Advanced Study", "institute"),
)

FIRST_NAMES = words(
    "Ada,Amara,Anders,Aiko,Beatriz,Bilal,Carlos,Chiara,Chen,Dalia,Daniel,Dmitri,Elif,Elena,Emeka,"
    "Farah,Felix,Freya,Gabriel,Grace,Hana,Henrik,Ines,Ivan,Jia,João,Jonas,Kamala,Karin,Kofi,Lars,"
    "Leila,Lucía,Marek,Mei,Mina,Nadia,Noah,Nora,Olga,Omar,Paolo,Priya,Rafael,Rosa,Ruth,Samir,Sara,"
    "Sofia,Tariq,Tomás,Uma,Valentina,Victor,Wanjiru,Xavier,Yara,Yusuf,Zoe,Zsófia"
)
LAST_NAMES = words(
    "Abe,Adeyemi,Almeida,Andersson,Bakker,Banerjee,Bauer,Bianchi,Brandt,Castillo,Chaudhry,Costa,"
    "Dahl,Demir,Dlamini,Duarte,Eriksen,Fernández,Fischer,Fontaine,García,Grant,Haddad,Hansen,"
    "Hoffmann,Horvat,Hughes,Ibrahim,Ivanova,Jansen,Kaplan,Kim,Kowalski,Krüger,Kumar,Laurent,Leroy,"
    "Li,Lindqvist,Lopes,Mäkinen,Marino,Mensah,Moreau,Murphy,Mwangi,Nakamura,Nguyen,Novak,Okafor,"
    "Okonkwo,Olsen,Ortega,Park,Patel,Petrov,Popescu,Quinn,Ramirez,Rossi,Sato,Schneider,Silva,Singh,"
    "Sørensen,Suzuki,Takahashi,Tanaka,Varga,Vega,Virtanen,Wagner,Wang,Weber,Wójcik,Yamada,Yilmaz,"
    "Zhang,Zhao,Zimmermann"
)
