from agents.models.agent import Agent
from agents.models.application import Application
from agents.models.call import Instruction, ModelCall
from agents.models.chain import Chain, ChainLink, DailyAnchor
from agents.models.credit_reading import CreditReading
from agents.models.decision import Decision
from agents.models.elicitation import Elicitation
from agents.models.family import AgentVersion, Family, LineUp, LineUpEntry, Maker, Release
from agents.models.forecast import Forecast, RefusedForecast
from agents.models.ledger import JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.maintenance import Maintenance
from agents.models.receipt import Attempt, Receipt, SigningKey
from agents.models.registration import Registration, Submission
from agents.models.run_setting import RunSetting
from agents.models.task import Task
from agents.models.universe_cost import UniverseCost
from agents.models.usage_total import UsageTotal
